// The texts of some kernels, as files that a person reads in a review. HEDDLE_UPDATE_GOLDEN=1 writes them anew.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/file/file.h"
#include "driver/shapes/import.h"
#include "tests/decisions/dump.h"

namespace heddle::decisions {
namespace {

namespace fs = std::filesystem;

class Golden : public testing::TestWithParam<std::string> {};

TEST_P(Golden, Texts) {
  const fs::path graph = GetParam();
  for (const Machine& machine : machines()) {
    const bool gpu = machine.name == "sm_90a";
    if (!gpu && machine.name != "avx512") continue;
    const fs::path file = fs::path(graph).replace_extension(machine.name + (gpu ? ".cu.txt" : ".cc.txt"));
    const std::string text = dump(driver::import_file(graph, {}).graph, machine, passes::Precision::kF32).kernels;
    if (std::getenv("HEDDLE_UPDATE_GOLDEN") != nullptr) write_file(file, text);
    ASSERT_TRUE(file_exists(file)) << file << ": HEDDLE_UPDATE_GOLDEN=1 writes it";
    EXPECT_EQ(MappedFile::read(file)->text(), text)
        << file << " is another text. If that is meant, HEDDLE_UPDATE_GOLDEN=1 writes it, and the diff is reviewed";
  }
}

std::vector<std::string> graphs() {
  std::vector<std::string> paths;
  for (const auto& entry : fs::directory_iterator(HEDDLE_GOLDEN)) {
    if (entry.path().extension() == ".hir") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

INSTANTIATE_TEST_SUITE_P(Kernels, Golden, testing::ValuesIn(graphs()),
                         [](const auto& param) { return fs::path(param.param).stem().string(); });

}  // namespace
}  // namespace heddle::decisions
