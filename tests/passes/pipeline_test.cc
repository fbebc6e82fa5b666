#include <algorithm>

#include "pass_test_util.h"

namespace heddle::passes {
namespace {

// Nodes that the passes for a GPU look for.
constexpr const char* kEverything = R"(graph(%x: f32[1,4,8,8], %w: f32[4,4,1,1], %i: i64[4,8], %u: f32[4,8]) {
  %c = conv(%x, %w) {strides = [1,1], low = [0,0], high = [0,0], dilations = [1,1], lhs_dilations = [1,1], groups = 1, layout = "nchw"}
  %m = reshape(%c) {shape = [32,8]}
  %d = dot(%m, %u) {lhs_batch = [], lhs_contract = [1], rhs_batch = [], rhs_contract = [1]}
  %s = scatter_elements(%u, %i, %u) {dim = 0, reduction = "none"}
  %r = reduce(%d) {dims = [0], kind = "sum"}
  return "r" = %r, "s" = %s
})";

// Names of the passes that a pipeline ran.
std::vector<std::string> passes_run(const Target& target, Precision precision = Precision::kF32) {
  std::vector<std::string> names;
  PipelineOptions options;
  options.observe = [&](const PassReport& report, const ir::Graph&) { names.emplace_back(report.name); };
  run_pipeline(ir::parse(kEverything), {target, precision}, options);
  return names;
}

bool has(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

TEST(Pipeline, PassesForAGpuDoNotRunForACpu) {
  const std::vector<std::string> on_cpu = passes_run(test_target()), on_gpu = passes_run(Target::cuda_h200());
  for (const char* name : {"merge_dots", "space_to_depth", "scatter_to_select", "epilogue_reductions"}) {
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
