#include "pass_test_util.h"

namespace heddle::passes {
namespace {

const std::vector<std::string> kPasses = {"precision", "canonicalize", "fold", "canonicalize", "cse"};

TEST(Precision, ContractionsAndWhatFollowsAreNarrow) {
  expect_ir(R"(graph(%x: f32[2,3], %r: f32[2,2]) {
      %w = constant {value = f32[3,2]{1, 2, 3, 4, 5, 6}}
      %b = constant {value = f32[2]{1, 2}}
      %d = dot(%x, %w) {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]}
      %bb = broadcast(%b) {shape = [2,2], dims = [1]}
      %a = add(%d, %bb)
      %s = add(%a, %r)
      %e = dot(%s, %w) {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [1]}
      return "y" = %e
    })",
            kPasses, R"(graph(%x: f32[2,3], %r: f32[2,2]) {
      %xn = cast(%x) {to = bf16}
      %w = constant {value = bf16[3,2]{1, 2, 3, 4, 5, 6}}
      %d = dot(%xn, %w) {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]}
      %b = constant {value = bf16[2]{1, 2}}
      %bb = broadcast(%b) {shape = [2,2], dims = [1]}
      %a = add(%d, %bb)
      %rn = cast(%r) {to = bf16}
      %s = add(%a, %rn)
      %e = dot(%s, %w) {lhs_batch = [], rhs_batch = [], lhs_contract = [1], out = f32, rhs_contract = [1]}
      return "y" = %e
    })",
            Precision::kBF16);
}

TEST(Precision, StatisticsAndExponentialsStayWide) {
  const ir::Graph graph = run(R"(graph(%q: f32[4,8], %k: f32[4,8], %v: f32[4,8]) {
      %s = dot(%q, %k) {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [1]}
      %c = constant {value = f32[]{0.25}}
      %cb = broadcast(%c) {shape = [4,4], dims = []}
      %t = mul(%s, %cb)
      %m = reduce(%t) {kind = "max", dims = [1]}
      %mb = broadcast(%m) {shape = [4,4], dims = [0]}
      %u = sub(%t, %mb)
      %e = exp(%u)
      %z = reduce(%e) {kind = "sum", dims = [1]}
      %zb = broadcast(%z) {shape = [4,4], dims = [0]}
      %p = div(%e, %zb)
      %o = dot(%p, %v) {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]}
      return "y" = %o
    })",
                              kPasses, Precision::kF16);
  for (const ir::Node& node : graph.nodes()) {
    const bool narrow = graph.dtype(node.outputs[0]) == DType::kF16;
    EXPECT_EQ(narrow, node.op == ir::Op::kCast) << ir::print(graph);
    if (node.op != ir::Op::kDot) continue;
    EXPECT_EQ(graph.dtype(node.inputs[0]), DType::kF16);
    EXPECT_EQ(graph.dtype(node.inputs[1]), DType::kF16);
  }
}

TEST(Precision, F32ChangesNothing) {
  const std::string_view text = R"(graph(%x: f32[2,3], %w: f32[3,2]) {
      %d = dot(%x, %w) {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]}
      return "y" = %d
    })";
  expect_ir(text, {"precision"}, text);
}

TEST(KeepRoundings, CastsThatFeedADecisionRound) {
  expect_ir(R"(graph(%x: f32[4]) {
      %a = cast(%x) {to = bf16, excess_precision = 1}
      %b = floor(%a)
      %c = cast(%x) {to = f16, excess_precision = 1}
      return "floor" = %b, "alone" = %c
    })",
            {"keep_roundings"}, R"(graph(%x: f32[4]) {
      %a = cast(%x) {to = bf16, excess_precision = 0}
      %b = floor(%a)
      %c = cast(%x) {to = f16, excess_precision = 1}
      return "floor" = %b, "alone" = %c
    })");
}

}  // namespace
}  // namespace heddle::passes
