#include <fmt/format.h>

#include <algorithm>

#include "pass_test_util.h"

namespace heddle::passes {
namespace {

ir::Graph compared(const ir::Graph& graph, const Target& target = Target::cuda_h200()) {
  const std::vector<std::string> names = {"compare_indices", "canonicalize", "fold", "cse"};
  return run_passes(graph, names, {target});
}

bool scatters(const ir::Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), [](const ir::Node& node) {
    return node.op == ir::Op::kScatterElements || node.op == ir::Op::kScatterNd;
  });
}

void expect_no_scatter_and_the_same(const std::string& text) {
  SCOPED_TRACE(text);
  const ir::Graph before = ir::parse(text), after = compared(before);
  EXPECT_FALSE(scatters(after));
  for (uint32_t seed = 1; seed <= 3; ++seed) expect_same(before, after, 1e-6, seed);
}

// Indices of the tests are in [0, 4), as random_inputs() makes them, so that several updates meet.
TEST(CompareIndices, ElementsOfEveryKindGoWhereTheyWent) {
  for (const char* kind : {"none", "add", "mul", "max", "min"}) {
    for (const char* type : {"f32", "f16", "i32", "u8"}) {
      for (const int dim : {0, 1, 2}) {
        const char* indices = dim == 0 ? "6,5,4" : dim == 1 ? "4,7,4" : "4,5,3";
        expect_no_scatter_and_the_same(
            fmt::format("graph(%d: {0}[4,5,4], %i: i64[{1}], %u: {0}[{1}]) {{ %y = scatter_elements(%d, %i, %u) {{dim "
                        "= {2}, reduction = "
                        "\"{3}\"}}\n return \"y\" = %y }}",
                        type, indices, dim, kind));
      }
    }
  }
}

TEST(CompareIndices, SlicesAreNamedByOneOrMoreIndices) {
  for (const char* kind : {"none", "add", "max"}) {
    expect_no_scatter_and_the_same(
        fmt::format("graph(%d: f32[4,3,5], %i: i32[6,1], %u: f32[6,3,5]) {{ %y = scatter_nd(%d, %i, %u) {{reduction = "
                    "\"{}\"}}\n return "
                    "\"y\" = %y }}",
                    kind));
    expect_no_scatter_and_the_same(
        fmt::format("graph(%d: f32[4,6,5], %i: i64[2,3,2], %u: f32[2,3,5]) {{ %y = scatter_nd(%d, %i, %u) {{reduction "
                    "= \"{}\"}}\n return "
                    "\"y\" = %y }}",
                    kind));
    expect_no_scatter_and_the_same(fmt::format(
        "graph(%d: f32[4,4], %i: i64[7,2], %u: f32[7]) {{ %y = scatter_nd(%d, %i, %u) {{reduction = \"{}\"}}\n return "
        "\"y\" = %y }}",
        kind));
  }
}

TEST(CompareIndices, NegativeOnesCountFromTheEnd) {
  expect_no_scatter_and_the_same(
      "graph(%d: f32[4,3], %j: i64[2,1], %u: f32[2,3]) { %four = constant {value = i64[2,1]{4}}\n %i = sub(%j, %four)\n"
      "%y = scatter_nd(%d, %i, %u) {reduction = \"none\"}\n return \"y\" = %y }");
  expect_no_scatter_and_the_same(
      "graph(%d: f32[4,3], %u: f32[2,3]) { %i = constant {value = i64[2,1]{-1, -4}}\n"
      "%y = scatter_nd(%d, %i, %u) {reduction = \"none\"}\n return \"y\" = %y }");
}

// Assignments to slices are exported so: an index for each element. Nothing is compared, however many there are.
TEST(CompareIndices, ConstantOnesAreLookedUpBefore) {
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
  const ir::Graph after = compared(ir::parse(text));
  for (const ir::Node& node : after.nodes()) EXPECT_NE(node.op, ir::Op::kReduce);
  expect_no_scatter_and_the_same(
      "graph(%d: f32[2,4,2], %u: f32[2,3,2]) { %i = constant {value = i64[2,3,2]{0, 1, 2, 3, 0, 0, 1, 1, 1, 2, 3, "
      "-1}}\n"
      "%y = scatter_elements(%d, %i, %u) {dim = 1, reduction = \"none\"}\n return \"y\" = %y }");
}

TEST(CompareIndices, LargeOnesAndThoseOfACpuStay) {
  const std::string large =
      "graph(%d: f32[100000,8], %i: i64[50000,1], %u: f32[50000,8]) { %y = scatter_nd(%d, %i, %u) {reduction = "
      "\"none\"}\n return \"y\" = %y }";
  EXPECT_TRUE(scatters(compared(ir::parse(large))));
  const std::string part =
      "graph(%d: f32[4,5], %i: i64[2,3], %u: f32[2,3]) { %y = scatter_elements(%d, %i, %u) {dim = 0, reduction = "
      "\"none\"}\n return \"y\" = %y }";
  EXPECT_TRUE(scatters(compared(ir::parse(part))));  // reaches a part of the other dimension only
  const std::string small =
      "graph(%d: f32[4,5], %i: i64[2,1], %u: f32[2,5]) { %y = scatter_nd(%d, %i, %u) {reduction = \"none\"}\n"
      "return \"y\" = %y }";
  EXPECT_TRUE(scatters(compared(ir::parse(small), test_target())));
  EXPECT_FALSE(scatters(compared(ir::parse(small))));
}

}  // namespace
}  // namespace heddle::passes
