// Ranges of extents on the command line.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "../driver/models.h"
#include "command.h"
#include "tests/frontend/model_bytes.h"

namespace heddle::cli {
namespace {

class CliRanges : public Cli {
 protected:
  // y[rows,8] = softmax(x[rows,24] w)
  CliRanges() {
    onnx::GraphSpec graph;
    graph.nodes = {{"MatMul", {"x", "w"}, {"z"}}, {"Softmax", {"z"}, {"y"}, {{"axis", int64_t{-1}}}}};
    graph.inputs = {{"x", DType::kF32, {-1, -1}}};
    graph.outputs = {"y"};
    graph.initializers = {{"w", onnx::floats({24, 8}, std::vector<float>(size_t{24} * 8, 0.5F))}};
    write_file(path("m.onnx"), onnx::model_bytes(graph, 17));
  }

  size_t libraries() const {
    size_t count = 0;
    std::error_code error;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(path("cache/library"), error)) {
      ++count;
    }
    return count;
  }
};

std::vector<int> shape_of_output(const Outcome& run) {
  return nlohmann::json::parse(run.out)["outputs"][0]["shape"].get<std::vector<int>>();
}

TEST_F(CliRanges, ModelsRunWithTheLargestExtentAndKernelsForTheOthersAreKept) {
  const Outcome one = heddle("run m.onnx --shape x=40,24 --json");
  ASSERT_EQ(one.exit_code, 0) << one.err;
  const size_t before = libraries();
  const std::string ranges = "run m.onnx --shape x=1..40,24 --json";
  const Outcome run = heddle(ranges);
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(shape_of_output(run), (std::vector<int>{40, 8}));
  const size_t after = libraries();
  EXPECT_GT(after, before);
  EXPECT_EQ(heddle(ranges).exit_code, 0);
  EXPECT_EQ(libraries(), after);
}

TEST_F(CliRanges, PlansAreForTheLargestExtentAndBenchTellsTheTime) {
  const Outcome compile = heddle("compile m.onnx --shape x=1..20,24 -o m.plan");
  EXPECT_EQ(compile.exit_code, 0) << compile.err;
  EXPECT_EQ(shape_of_output(heddle("run m.plan --json")), (std::vector<int>{20, 8}));
  const Outcome bench = heddle("bench m.onnx --shape x=1..20,24 --seconds 0 --json");
  ASSERT_EQ(bench.exit_code, 0) << bench.err;
  EXPECT_GT(nlohmann::json::parse(bench.out)["ranges_s"].get<double>(), 0);
}

// Other batches have kernels of their own: a text of one of them is said to be used, or not to be, and not both.
TEST_F(CliRanges, WhatIsSaidOfAnEditedTextIsSaidOnce) {
  namespace fs = std::filesystem;
  for (const char* rows : {"1", "64"}) {
    EXPECT_EQ(heddle(std::string("compile m.onnx --emit texts --shape x=") + rows + ",24").exit_code, 0);
  }
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(path("texts"))) {
    files.push_back(entry.path().filename());
    write_file(entry.path(), std::string(MappedFile::read(entry.path())->text()) + "// edited\n");
  }
  ASSERT_GE(files.size(), 2u);
  write_file(path("texts/stranger.cc"), "// edited\n");
  files.emplace_back("stranger.cc");
  for (const char* rows : {"1", "1..64"}) {
    const Outcome run = heddle(std::string("run m.onnx --shape x=") + rows + ",24", "HEDDLE_KERNEL_OVERRIDE=texts");
    EXPECT_EQ(run.exit_code, 0) << run.err;
    for (const std::string& file : files) {
      const bool used = run.err.find(file + " is used in place") != std::string::npos;
      const bool unused = run.err.find(file + " is not used") != std::string::npos;
      EXPECT_NE(used, unused) << rows << ", " << file << "\n" << run.err;
    }
    EXPECT_NE(run.err.find("stranger.cc is not used"), std::string::npos) << run.err;
    EXPECT_NE(run.err.find(" is used in place"), std::string::npos) << run.err;
  }
}

TEST_F(CliRanges, WhatIsNoRangeIsSaidWithAnExample) {
  for (const std::string shape : {"x=9..2,24", "x=1..,24", "x=..4,24", "x=1..4..8,24", "x=1..two,24", "x=-1..4,24"}) {
    const Outcome outcome = heddle("run m.onnx --shape " + shape);
    expect_error(outcome, 2, shape);
    EXPECT_NE(outcome.err.find("--shape ids=1,1..512"), std::string::npos) << outcome.err;
  }
}

TEST_F(CliRanges, RangesAreRefusedWhereNothingTakesThem) {
  expect_error(heddle("explain m.onnx --shape x=1..4,24"), 2, "run, bench and compile");
  expect_error(heddle("compile m.onnx --target cuda --shape x=1..4,24 -o m.plan"), 2, "--target cpu");
  test::write_mlp(path("fixed.onnx"));
  expect_error(heddle("run fixed.onnx --shape x=1..2,8"), 2, "x.0");
}

}  // namespace
}  // namespace heddle::cli
