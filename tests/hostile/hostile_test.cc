#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "base/clock.h"
#include "base/file/file.h"
#include "base/memory.h"
#include "corpus.h"

namespace heddle::hostile {
namespace {

namespace fs = std::filesystem;

// What an import may take here. A sanitizer makes everything several times as large and as slow.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr double kSlower = 10;
#else
constexpr double kSlower = 1;
#endif
constexpr double kSeconds = 10 * kSlower;
constexpr auto kBytes = static_cast<uint64_t>(kSlower * (1 << 30));

Corpus whole_corpus() {
  Corpus all;
  for (const auto family : {wire_models, graph_models, tensor_models, operator_models, giant_models}) {
    Corpus part = family();
    all.insert(all.end(), std::make_move_iterator(part.begin()), std::make_move_iterator(part.end()));
  }
  return all;
}

void write_files(const HostileModel& model, const std::string& folder) {
  for (const auto& [name, content] : model.files) {
    const std::string path = folder + "/" + name;
    fs::create_directories(fs::path(path).parent_path());
    if (content.starts_with("-> ")) {
      fs::create_symlink(content.substr(3), path);
    } else {
      std::ofstream(path, std::ios::binary) << content;
    }
  }
}

std::string outcome_of(const HostileModel& model, const std::string& bytes, const std::string& folder) {
  onnx::ImportOptions options;
  options.limits.bytes = int64_t{256} << 20;
  try {
    onnx::testing::import(bytes, options, folder);
  } catch (const Error& error) {
    if (model.code && error.code() == *model.code && std::string(error.what()).find(model.says) != std::string::npos) {
      return "as expected";
    }
    return std::string(error.what()).substr(0, 400);
  }
  return model.code ? "it imports" : "as expected";
}

TEST(Hostile, EveryModelGivesWhatItMust) {
  const Corpus corpus = whole_corpus();
  EXPECT_GE(corpus.size(), 200u);
  std::set<std::string> names;
  for (const HostileModel& model : corpus) {
    EXPECT_TRUE(names.insert(model.name).second) << model.name << " is there twice";
    const TempDir folder;
    write_files(model, folder.path());
    const std::string bytes = model.bytes();
    reset_peak_memory();
    const uint64_t before = peak_memory();
    const double start = wall_seconds();
    EXPECT_EQ(outcome_of(model, bytes, folder.path()), "as expected") << model.name;
    EXPECT_LT(wall_seconds() - start, kSeconds) << model.name;
    EXPECT_LT(peak_memory() - before, kBytes) << model.name;
  }
}

}  // namespace
}  // namespace heddle::hostile
