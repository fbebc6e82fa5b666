#include "pass_test_util.h"
#include "passes/fusion/fusion.h"
#include "random_graph.h"

namespace heddle::passes {
namespace {

constexpr uint32_t kGraphs = 150;
constexpr int kNodes = 25;

// Whatever a pass does, the values stay. A failure names its seed.
TEST(RandomGraphs, EachPassKeepsTheValues) {
  std::vector<std::string> names;
  for (const Pass& pass : pipeline()) {
    if (std::find(names.begin(), names.end(), pass.name) == names.end()) names.emplace_back(pass.name);
  }
  for (uint32_t seed = 0; seed < kGraphs; ++seed) {
    SCOPED_TRACE(seed);
    const ir::Graph graph = random_graph(seed, kNodes);
    for (const std::string& name : names) {
      SCOPED_TRACE(name);
      expect_same(graph, run_passes(graph, std::vector{name}, {test_target()}), 1e-4, seed);
      if (HasFailure()) return;
    }
  }
}

TEST(RandomGraphs, ThePipelineKeepsTheValues) {
  for (uint32_t seed = 0; seed < 2 * kGraphs; ++seed) {
    SCOPED_TRACE(seed);
    const ir::Graph graph = random_graph(seed, 2 * kNodes);
    const ir::Graph after = run_pipeline(graph, {test_target()});
    expect_same(graph, after, 1e-4, seed);
    // What is printed reads back as the same graph.
    const ir::PrintOptions all{.max_constant_elements = -1, .origins = true};
    EXPECT_EQ(ir::print(ir::parse(ir::print(after, all)), all), ir::print(after, all));
    if (HasFailure()) return;
  }
}

TEST(RandomGraphs, GroupsRunInTheirOrder) {
  for (uint32_t seed = 0; seed < 2 * kGraphs; ++seed) {
    SCOPED_TRACE(seed);
    const ir::Graph graph = run_pipeline(random_graph(seed, 2 * kNodes), {test_target()});
    for (const FusionPolicy policy : {FusionPolicy::kNone, FusionPolicy::kBasic, FusionPolicy::kStitch}) {
      FusionOptions options;
      options.policy = policy;
      check_contract(graph, fuse(graph, test_target(), options));
      if (HasFailure()) return;
    }
  }
}

}  // namespace
}  // namespace heddle::passes
