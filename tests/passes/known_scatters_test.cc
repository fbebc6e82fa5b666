#include <fmt/format.h>

#include <algorithm>

#include "pass_test_util.h"

namespace heddle::passes {
namespace {

ir::Graph rewritten(const ir::Graph& graph, const Target& target = Target::cuda_h200()) {
  const std::vector<std::string> names = {"scatter_to_select", "canonicalize", "fold", "cse"};
  return run_passes(graph, names, {target});
}

bool scatters(const ir::Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), [](const ir::Node& node) {
    return node.op == ir::Op::kScatterElements || node.op == ir::Op::kScatterNd;
  });
}

void expect_no_scatter_and_the_same(const std::string& text) {
  SCOPED_TRACE(text);
  const ir::Graph before = ir::parse(text), after = rewritten(before);
  EXPECT_FALSE(scatters(after));
  for (uint32_t seed = 1; seed <= 3; ++seed) expect_same(before, after, 1e-6, seed);
}

TEST(KnownScatters, NegativeOnesCountFromTheEnd) {
  expect_no_scatter_and_the_same(
      "graph(%d: f32[4,3], %u: f32[2,3]) { %i = constant {value = i64[2,1]{-1, -4}}\n"
      "%y = scatter_nd(%d, %i, %u) {reduction = \"none\"}\n return \"y\" = %y }");
}

TEST(KnownScatters, TheLastOfSeveralStays) {
  expect_no_scatter_and_the_same(
      "graph(%d: f32[4,3], %u: f32[5,3]) { %i = constant {value = i64[5,1]{2, 0, 2, -2, 0}}\n"
      "%y = scatter_nd(%d, %i, %u) {reduction = \"none\"}\n return \"y\" = %y }");
}

// Assignments to slices are exported so: an index for each element.
TEST(KnownScatters, ConstantOnesAreLookedUpBefore) {
  std::string indices;
  for (int row = 1; row < 3; ++row) {
    for (int column = 0; column < 5; column += 2)
      indices += fmt::format("{}{}, {}", indices.empty() ? "" : ", ", row, column);
  }
  const std::string text = fmt::format(
      "graph(%d: f32[4,5], %u: f32[2,3]) {{ %i = constant {{value = i64[2,3,2]{{{}}}}}\n"
      "%y = scatter_nd(%d, %i, %u) {{reduction = \"none\"}}\n return \"y\" = %y }}",
      indices);
  expect_no_scatter_and_the_same(text);
  const ir::Graph after = rewritten(ir::parse(text));
  for (const ir::Node& node : after.nodes()) EXPECT_NE(node.op, ir::Op::kReduce);
  expect_no_scatter_and_the_same(
      "graph(%d: f32[2,4,2], %u: f32[2,3,2]) { %i = constant {value = i64[2,3,2]{0, 1, 2, 3, 0, 0, 1, 1, 1, 2, 3, "
      "-1}}\n"
      "%y = scatter_elements(%d, %i, %u) {dim = 1, reduction = \"none\"}\n return \"y\" = %y }");
}

// They have kernels of their own.
TEST(KnownScatters, OthersStay) {
  const std::string indices = "%i = constant {value = i64[2,1]{1, 3}}\n";
  const auto scatter = [](const std::string& before, const std::string& parameters, const std::string& reduction) {
    return ir::parse("graph(%d: f32[4,5], %u: f32[2,5]" + parameters + ") { " + before +
                     "%y = scatter_nd(%d, %i, %u) {reduction = \"" + reduction + "\"}\n return \"y\" = %y }");
  };
  EXPECT_FALSE(scatters(rewritten(scatter(indices, "", "none"))));
  EXPECT_TRUE(scatters(rewritten(scatter(indices, "", "none"), test_target())));
  EXPECT_TRUE(scatters(rewritten(scatter(indices, "", "add"))));
  EXPECT_TRUE(scatters(rewritten(scatter("", ", %i: i64[2,1]", "none"))));
  // Reaches a part of the other dimension only.
  EXPECT_TRUE(scatters(
      rewritten(ir::parse("graph(%d: f32[4,5], %u: f32[2,3]) { %i = constant {value = i64[2,3]{0, 1, 2, 3, 2, 1}}\n"
                          "%y = scatter_elements(%d, %i, %u) {dim = 0, reduction = \"none\"}\n return \"y\" = %y }"))));
}

// The gradient of a loss that picks a class of each row.
TEST(KnownScatters, OneUpdateOfARowIsCompared) {
  for (const char* kind : {"none", "add"}) {
    const std::string end = fmt::format("reduction = \"{}\"}}\n return \"y\" = %y }}", kind);
    expect_no_scatter_and_the_same(
        "graph(%d: f32[5,4], %i: i64[5,1], %u: f32[5,1]) {\n"
        "%y = scatter_elements(%d, %i, %u) {dim = 1, " +
        end);
    // Negative ones count from the end; the updates lie along an inner dimension.
    expect_no_scatter_and_the_same(
        "graph(%d: f16[3,4,2], %n: i32[3,1,2], %u: f16[3,1,2]) {\n"
        "%i = neg(%n)\n %y = scatter_elements(%d, %i, %u) {dim = 1, " +
        end);
  }
  const auto stays = [](const std::string& text) { return scatters(rewritten(ir::parse(text))); };
  EXPECT_TRUE(
      stays("graph(%d: f32[5,4], %i: i64[5,2], %u: f32[5,2]) { %y = scatter_elements(%d, %i, %u) "
            "{dim = 1, reduction = \"none\"}\n return \"y\" = %y }"));
  EXPECT_TRUE(
      stays("graph(%d: f32[5,4], %i: i64[3,1], %u: f32[3,1]) { %y = scatter_elements(%d, %i, %u) "
            "{dim = 1, reduction = \"none\"}\n return \"y\" = %y }"));
}

}  // namespace
}  // namespace heddle::passes
