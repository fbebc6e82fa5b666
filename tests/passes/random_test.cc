#include <optional>
#include <random>
#include <sstream>

#include "pass_test_util.h"
#include "passes/fusion/fusion.h"
#include "random_graph.h"

namespace heddle::passes {
namespace {

constexpr uint32_t kGraphs = 150;
constexpr int kNodes = 25;

// The text of a graph without the types of results, so that another attribute gives another valid graph.
std::string without_types(const ir::Graph& graph) {
  std::istringstream lines(ir::print(graph, {.max_constant_elements = -1, .origins = false}));
  std::string text, line;
  while (std::getline(lines, line)) {
    const size_t colon = line.rfind(" : ");
    text += (line.starts_with("graph") ? line : line.substr(0, colon)) + "\n";
  }
  return text;
}

// Graphs that no generator thinks of: digits of the text change. What still parses must go through the pipeline.
TEST(RandomGraphs, MutatedGraphsGoThrough) {
  std::mt19937 random(11);
  int valid = 0;
  for (uint32_t seed = 0; seed < 4 * kGraphs; ++seed) {
    SCOPED_TRACE(seed);
    const std::string original = without_types(random_graph(seed, kNodes / 2));
    for (int attempt = 0; attempt < 8; ++attempt) {
      std::string text = original;
      for (int changes = 0; changes < 3;) {
        const size_t at = random() % text.size();
        if (std::isdigit(static_cast<unsigned char>(text[at])) == 0) continue;
        text[at] = "0123412349"[random() % 10];
        ++changes;
      }
      std::optional<ir::Graph> graph;
      try {
        graph = ir::parse(text);
      } catch (const Error& error) {
        ASSERT_NE(error.code(), ErrorCode::kInternal) << error.what();
        continue;
      }
      ++valid;
      ir::Graph after;
      ASSERT_NO_THROW(after = run_pipeline(*graph, {test_target()})) << text;
      int64_t largest = 0;
      for (const ir::Node& node : graph->nodes()) {
        for (ir::ValueId v : node.outputs) largest = std::max(largest, element_count(graph->shape(v)));
      }
      if (largest > 100000) continue;
      try {
        ir::evaluate(*graph, random_inputs(*graph, seed));
      } catch (const Error&) {
        continue;  // an index outside its axis
      }
      expect_same(*graph, after, 1e-4, seed);
      if (HasFailure()) FAIL() << text;
    }
  }
  EXPECT_GT(valid, 500);
}

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
