// The texts of some kernels, as files that a person reads in a review. HEDDLE_UPDATE_GOLDEN=1 writes them anew.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <sstream>

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
    static const std::map<std::string, std::string> suffixes = {
        {"avx512", ".cc.txt"}, {"sm_90a", ".cu.txt"}, {"gfx942", ".hip.txt"}};
    const auto suffix = suffixes.find(machine.name);
    if (suffix == suffixes.end()) continue;
    const fs::path file = fs::path(graph).replace_extension(machine.name + suffix->second);
    const std::string text = dump(driver::import_file(graph, {}).graph, machine, passes::Precision::kF32).kernels;
    if (std::getenv("HEDDLE_UPDATE_GOLDEN") != nullptr) write_file(file, text);
    ASSERT_TRUE(file_exists(file)) << file << ": HEDDLE_UPDATE_GOLDEN=1 writes it";
    EXPECT_EQ(MappedFile::read(file)->text(), text)
        << file << " is another text. If that is meant, HEDDLE_UPDATE_GOLDEN=1 writes it, and the diff is reviewed";
  }
}

// Lines of code of a kernel: without what all have in front, comments and what is empty.
int64_t code_lines(const fs::path& file) {
  std::istringstream text{std::string(MappedFile::read(file)->text())};
  int64_t count = 0;
  for (std::string line; std::getline(text, line);) {
    const size_t first = line.find_first_not_of(' ');
    if (first == std::string::npos || line[first] == '#' || line.compare(first, 2, "//") == 0) continue;
    if (line == "namespace tile = heddle::tile;") continue;
    ++count;
  }
  return count;
}

TEST(Golden, AKernelFitsOnAPage) {
  const fs::path folder = HEDDLE_GOLDEN;
  EXPECT_LE(code_lines(folder / "layer_norm.sm_90a.cu.txt"), 30);
  EXPECT_LE(code_lines(folder / "gemm_bias_relu.sm_90a.cu.txt"), 25);
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
