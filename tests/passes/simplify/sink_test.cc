#include "tests/passes/pass_test_util.h"

namespace heddle::passes {
namespace {

const ir::Node& node_of(const ir::Graph& graph, ir::Op op) {
  for (const ir::Node& node : graph.nodes()) {
    if (node.op == op) return node;
  }
  throw std::runtime_error("no such node");
}

int count_of(const ir::Graph& graph, ir::Op op) {
  int count = 0;
  for (const ir::Node& node : graph.nodes()) count += node.op == op;
  return count;
}

// Weights that are dequantised outside a loop become dequantised in its body, also in a nested loop. Values that depend
// on an input stay outside.
TEST(SinkConstants, IntoLoopsInLoops) {
  const ir::Graph before = ir::parse(R"(graph(%x: f32[2,3], %scale: f32[3]) {
    %q = constant {value = i8[3,3]{1,-2,3,4,-5,6,7,8,-9}}
    %f = cast(%q) {to = f32}
    %s = constant {value = f32[]{0.125}}
    %s1 = broadcast(%s) {shape = [3,3], dims = []}
    %w = mul(%f, %s1)
    %n = constant {value = i64[]{2}}
    %c = constant {value = bool[]{1}}
    %s2 = broadcast(%scale) {shape = [2,3], dims = [1]}
    %y = loop(%n, %c, %x, %w, %s2) {states = 1, scans = 0, trip = 2, body = graph(%i: i64[], %go: bool[], %h: f32[2,3], %w: f32[3,3], %t: f32[2,3]) {
      %n = constant {value = i64[]{3}}
      %inner = loop(%n, %go, %h, %w) {states = 1, scans = 0, trip = 3, body = graph(%i: i64[], %go: bool[], %h: f32[2,3], %w: f32[3,3]) {
        %d = dot(%h, %w) {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]}
        %t = tanh(%d)
        return "go" = %go, "h" = %t
      }}
      %m = mul(%inner, %t)
      return "go" = %go, "h" = %m
    }}
    return "y" = %y
  })");
  const ir::Graph after =
      run_passes(before, std::vector<std::string>{"sink_constants", "dce"}, {test_target(), Precision::kF32});
  expect_same(before, after);
  EXPECT_EQ(count_of(after, ir::Op::kCast), 0);
  const ir::Node& outer = node_of(after, ir::Op::kLoop);
  EXPECT_EQ(outer.inputs.size(), 4u);
  const ir::Graph& body = outer.attrs.graph("body");
  EXPECT_EQ(count_of(body, ir::Op::kCast), 0);
  const ir::Node& inner = node_of(body, ir::Op::kLoop);
  EXPECT_EQ(inner.inputs.size(), 3u);
  EXPECT_EQ(count_of(inner.attrs.graph("body"), ir::Op::kCast), 1);
}

TEST(SinkConstants, IntoBothBranches) {
  const ir::Graph before = ir::parse(R"(graph(%p: bool[], %x: f32[3]) {
    %k = constant {value = f32[3]{1,2,3}}
    %y = if(%p, %x, %k) {then = graph(%x: f32[3], %k: f32[3]) {
      %a = add(%x, %k)
      return "a" = %a
    }, else = graph(%x: f32[3], %k: f32[3]) {
      %m = mul(%x, %k)
      return "m" = %m
    }}
    return "y" = %y
  })");
  const ir::Graph after =
      run_passes(before, std::vector<std::string>{"sink_constants", "dce"}, {test_target(), Precision::kF32});
  expect_same(before, after);
  const ir::Node& branch = node_of(after, ir::Op::kIf);
  EXPECT_EQ(branch.inputs.size(), 2u);
  for (const char* name : {"then", "else"}) EXPECT_EQ(count_of(branch.attrs.graph(name), ir::Op::kConstant), 1) << name;
}

}  // namespace
}  // namespace heddle::passes
