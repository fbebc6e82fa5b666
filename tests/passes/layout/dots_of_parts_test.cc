#include <algorithm>

#include "tests/passes/pass_test_util.h"

namespace heddle::passes {
namespace {

// The most elements that a concatenation has.
int64_t largest_concat(const ir::Graph& graph) {
  int64_t largest = 0;
  for (const ir::Node& node : graph.nodes()) {
    if (node.op == ir::Op::kConcat) largest = std::max(largest, element_count(graph.shape(node.outputs[0])));
  }
  return largest;
}

void expect_largest_concat(const std::string& text, int64_t largest) {
  const ir::Graph before = ir::parse(text), after = run(text, {"dots_of_parts"});
  expect_same(before, after);
  EXPECT_EQ(largest_concat(after), largest) << ir::print(after);
}

// A step of a decoder with 2 sequences: 20 earlier keys and values and new ones, 2 rows of queries for each head of
// keys.
std::string step(const std::string& outputs) {
  return R"(graph(%q: f32[2,3,2,16], %past: f32[2,3,20,16], %k: f32[2,3,1,16], %old: f32[2,3,20,16], %v: f32[2,3,1,16]) {
      %keys = concat(%past, %k) {dim = 2}
      %s = dot(%q, %keys) {lhs_batch = [0,1], rhs_batch = [0,1], lhs_contract = [3], rhs_contract = [3]}
      %e = exp(%s)
      %all = concat(%old, %v) {dim = 2}
      %values = reshape(%all) {shape = [2,3,21,1,16]}
      %m = dot(%e, %values) {lhs_batch = [0,1], rhs_batch = [0,1], lhs_contract = [3], rhs_contract = [2]}
      )" +
         outputs + "}";
}

TEST(DotsOfParts, KeysAndValuesAreReadWhereTheyLie) {
  expect_largest_concat(step("return \"m\" = %m"), 2 * 3 * 2 * 21);
}

TEST(DotsOfParts, ConcatenationsThatOthersReadStay) {
  expect_largest_concat(step("return \"m\" = %m, \"keys\" = %keys, \"values\" = %all"), 2 * 3 * 21 * 16);
}

TEST(DotsOfParts, PartsThatAreComputedMayLieInOneTensor) {
  expect_largest_concat(R"(graph(%q: f32[1,16], %a: f32[20,16], %b: f32[4,16]) {
      %x = exp(%a)
      %y = exp(%b)
      %keys = concat(%x, %y) {dim = 0}
      %s = dot(%q, %keys) {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [1]}
      return "s" = %s
    })",
                        24 * 16);
}

TEST(DotsOfParts, ManyRowsReadOneConcatenation) {
  expect_largest_concat(R"(graph(%q: f32[16,16], %past: f32[20,16], %k: f32[4,16]) {
      %keys = concat(%past, %k) {dim = 0}
      %s = dot(%keys, %q) {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [1]}
      return "s" = %s
    })",
                        24 * 16);
}

}  // namespace
}  // namespace heddle::passes
