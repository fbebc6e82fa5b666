#include <algorithm>

#include "pass_test_util.h"

namespace heddle::passes {
namespace {

// Names of the passes that a pipeline ran.
std::vector<std::string> passes_run(const Target& target, Precision precision = Precision::kF32) {
  std::vector<std::string> names;
  PipelineOptions options;
  options.observe = [&](const PassReport& report, const ir::Graph&) { names.emplace_back(report.name); };
  ir::Graph graph;
  graph.output("y", graph.parameter("x", {DType::kF32, {2}}));
  run_pipeline(graph, {target, precision}, options);
  return names;
}

bool has(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

TEST(Pipeline, PassesForAGpuDoNotRunForACpu) {
  const std::vector<std::string> on_cpu = passes_run(test_target()), on_gpu = passes_run(Target::cuda_h200());
  for (const char* name : {"merge_products", "wide_pixels", "known_scatters", "partial_reductions"}) {
    EXPECT_FALSE(has(on_cpu, name)) << name;
    EXPECT_TRUE(has(on_gpu, name)) << name;
  }
}

TEST(Pipeline, PrecisionRunsWhereItDiffersFromF32) {
  EXPECT_FALSE(has(passes_run(test_target()), "precision"));
  EXPECT_FALSE(has(passes_run(test_target(), Precision::kTf32), "precision"));
  EXPECT_TRUE(has(passes_run(test_target(), Precision::kBF16), "precision"));
  EXPECT_TRUE(has(passes_run(Target::cuda_h200(), Precision::kTf32), "precision"));
}

}  // namespace
}  // namespace heddle::passes
