#include <fmt/format.h>

#include <algorithm>

#include "tests/passes/pass_test_util.h"

namespace heddle::passes {
namespace {

// The largest result of a product.
int64_t largest_product(const ir::Graph& graph) {
  int64_t largest = 0;
  for (const ir::Node& node : graph.nodes()) {
    if (node.op == ir::Op::kDot) largest = std::max(largest, element_count(graph.shape(node.outputs[0])));
  }
  return largest;
}

void expect_largest_product(const std::string& text, int64_t largest) {
  const ir::Graph before = ir::parse(text), after = run(text, {"select_early"});
  expect_same(before, after);
  EXPECT_EQ(largest_product(after), largest) << ir::print(after);
}

// A layer with a residual sum and a norm, and a head, for which `select` chooses rows of %l f32[2,16,32].
std::string layer_and_head(const std::string& select, const std::string& outputs = "return \"o\" = %o") {
  return R"(graph(%x: f32[2,16,8], %w: f32[8,8], %h: f32[8,32], %row: i64[2,1], %one: i64[1]) {
      %y = dot(%x, %w) {lhs_batch = [], rhs_batch = [], lhs_contract = [2], rhs_contract = [0]}
      %z = add(%x, %y)
      %s = reduce(%z) {kind = "sum", dims = [2]}
      %b = broadcast(%s) {shape = [2,16,8], dims = [0,1]}
      %n = sub(%z, %b)
      %l = dot(%n, %h) {lhs_batch = [], rhs_batch = [], lhs_contract = [2], rhs_contract = [0]}
      )" +
         select + outputs + "}";
}

TEST(SelectEarly, OneRowForEachElementOfTheBatch) {
  expect_largest_product(layer_and_head("%o = gather_nd(%l, %row) {batch_dims = 1}\n"), 2 * 32);
}

TEST(SelectEarly, OneRowForAll) {
  expect_largest_product(layer_and_head("%o = gather(%l, %one) {dim = 1}\n"), 2 * 32);
}

TEST(SelectEarly, EveryThirdRow) {
  expect_largest_product(layer_and_head("%o = slice(%l) {starts = [0,1,0], limits = [2,16,32], strides = [1,3,1]}\n"),
                         2 * 5 * 32);
}

TEST(SelectEarly, ColumnsAreRowsOfTheOtherOperand) {
  expect_largest_product(layer_and_head("%o = slice(%l) {starts = [0,0,4], limits = [2,16,8], strides = [1,1,1]}\n"),
                         2 * 16 * 8);
}

// Selected at run time, the matrices would be copied, and products could not take them as they were packed ahead.
TEST(SelectEarly, ConstantMatricesAreNotCopiedInEachRun) {
  const auto text = [](const char* matrices) {
    return fmt::format(R"(graph(%x: f32[8,1,4], %m: f32[8,4,16], %ids: i64[2]) {{
      %w = {}
      %y = dot(%x, %w) {{lhs_batch = [0], rhs_batch = [0], lhs_contract = [2], rhs_contract = [1]}}
      %o = gather(%y, %ids) {{dim = 0}}
      return "o" = %o
    }})",
                       matrices);
  };
  expect_largest_product(text("constant {value = f32[8,4,16]{0.5}}"), 8 * 16);
  expect_largest_product(text("abs(%m)"), 2 * 16);
}

TEST(SelectEarly, RowsOfHeadsAreSelectedThroughTheirLayout) {
  expect_largest_product(R"(graph(%q: f32[2,3,16,4], %k: f32[2,3,7,4], %v: f32[2,3,7,5], %w: f32[15,6]) {
      %s = dot(%q, %k) {lhs_batch = [0,1], rhs_batch = [0,1], lhs_contract = [3], rhs_contract = [3]}
      %e = exp(%s)
      %c = reduce(%e) {kind = "sum", dims = [3]}
      %b = broadcast(%c) {shape = [2,3,16,7], dims = [0,1,2]}
      %p = div(%e, %b)
      %m = dot(%p, %v) {lhs_batch = [0,1], rhs_batch = [0,1], lhs_contract = [3], rhs_contract = [2]}
      %t = transpose(%m) {perm = [0,2,1,3]}
      %f = reshape(%t) {shape = [2,16,15]}
      %y = dot(%f, %w) {lhs_batch = [], rhs_batch = [], lhs_contract = [2], rhs_contract = [0]}
      %o = slice(%y) {starts = [0,0,0], limits = [2,1,6], strides = [1,1,1]}
      return "o" = %o
    })",
                         2 * 3 * 7);
}

TEST(SelectEarly, OtherReadersNeedAllRows) {
  const std::string half = "%o = slice(%l) {starts = [0,0,0], limits = [2,8,32], strides = [1,1,1]}\n";
  expect_largest_product(layer_and_head(half, "return \"o\" = %o, \"l\" = %l"), 2 * 16 * 32);
  // The layer is needed as a whole, the head is not.
  expect_largest_product(layer_and_head(half, "return \"o\" = %o, \"n\" = %n"), 2 * 8 * 32);
  const std::string both =
      "%r = slice(%l) {starts = [0,8,0], limits = [2,16,32], strides = [1,1,1]}\n%d = add(%p, %r)\n";
  expect_largest_product(
      layer_and_head("%p = slice(%l) {starts = [0,0,0], limits = [2,8,32], strides = [1,1,1]}\n" + both,
                     "return \"d\" = %d"),
      2 * 16 * 32);
}

TEST(SelectEarly, IndicesThatAreComputedFromTheRowsStayBehindThem) {
  expect_largest_product(layer_and_head(R"(%a = arg_reduce(%l) {kind = "max", dim = 1, last = 0}
      %f = slice(%a) {starts = [0,0], limits = [2,1], strides = [1,1]}
      %o = gather_nd(%l, %f) {batch_dims = 1}
      )"),
                         2 * 16 * 32);
}

}  // namespace
}  // namespace heddle::passes
