#include <fmt/format.h>

#include "pass_test_util.h"

namespace heddle::passes {
namespace {

ir::Graph turned(const ir::Graph& graph, const Target& target = Target::cuda_h200()) {
  const std::vector<std::string> names = {"weights_along_k"};
  return run_passes(graph, names, {target, Precision::kF16});
}

const ir::Node& product(const ir::Graph& graph, int which = 0) {
  for (const ir::Node& node : graph.nodes()) {
    if (node.op == ir::Op::kDot && which-- == 0) return node;
  }
  throw std::logic_error("no product");
}

std::string product_of(const char* type, int m, int k, int n, bool along_k, const char* more = "") {
  const std::string weights = along_k ? fmt::format("{},{}", n, k) : fmt::format("{},{}", k, n);
  return fmt::format(R"(graph(%x: {0}[{1},{2}]) {{
    %w = constant {{value = {0}[{4}]{{1}}}}
    %y = dot(%x, %w) {{lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [{5}]{6}}} : {0}[{1},{3}]
    return "y" = %y }})",
                     type, m, k, n, weights, along_k ? 1 : 0, more);
}

TEST(WeightsAlongK, ComputeTheSame) {
  struct Case {
    const char* type;
    int k, n;
    bool along_k;
    const char* more;
    bool turns;
  };
  const Case cases[] = {
      {"f32", 24, 40, false, ", tf32 = 1", true}, {"f32", 7, 5, false, ", tf32 = 1", true},
      {"f32", 24, 40, true, ", tf32 = 1", false}, {"f32", 24, 40, false, "", false},
      {"f16", 24, 40, false, "", false},
  };
  for (const Case& c : cases) {
    const std::string text = product_of(c.type, 9, c.k, c.n, c.along_k, c.more);
    SCOPED_TRACE(text);
    const ir::Graph before = ir::parse(text), after = turned(before);
    const ir::Node& dot = product(after);
    EXPECT_EQ(dot.attrs.ints("rhs_contract")[0], c.along_k || c.turns ? 1 : 0);
    EXPECT_EQ(after.shape(dot.inputs[1])[c.along_k || c.turns ? 1 : 0], c.k);
    EXPECT_NE(after.constant_of(dot.inputs[1]), nullptr) << "turned at compile time";
    expect_same(before, after, 2e-3);
  }
}

TEST(WeightsAlongK, ProductsShareThem) {
  const ir::Graph before = ir::parse(R"(graph(%x: f32[9,24], %z: f32[5,24]) {
    %w = constant {value = f32[24,40]{1}}
    %0 = dot(%x, %w) {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0], tf32 = 1} : f32[9,40]
    %1 = dot(%z, %w) {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0], tf32 = 1} : f32[5,40]
    return "a" = %0, "b" = %1 })");
  const ir::Graph after = turned(before);
  EXPECT_EQ(product(after).inputs[1], product(after, 1).inputs[1]);
  EXPECT_EQ(after.nodes().size(), before.nodes().size()) << "the old matrix is gone";
  expect_same(before, after, 2e-3);
}

TEST(WeightsAlongK, OnlyForAGpu) {
  const ir::Graph before = ir::parse(product_of("f32", 9, 24, 40, false, ", tf32 = 1"));
  EXPECT_EQ(ir::print(turned(before, test_target())), ir::print(before));
}

}  // namespace
}  // namespace heddle::passes
