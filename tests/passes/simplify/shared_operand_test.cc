#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <random>

#include "tests/passes/pass_test_util.h"

namespace heddle::passes {
namespace {

// The largest value that a broadcast of more than a scalar makes.
int64_t largest_broadcast(const ir::Graph& graph) {
  int64_t largest = 0;
  for (const ir::Node& node : graph.nodes()) {
    if (node.op != ir::Op::kBroadcast || graph.shape(node.inputs[0]).empty()) continue;
    largest = std::max(largest, element_count(graph.shape(node.outputs[0])));
  }
  return largest;
}

void expect_shared(std::string_view text) {
  const ir::Graph before = ir::parse(text), after = run(text, {"canonicalize"});
  expect_same(before, after);
  EXPECT_EQ(largest_broadcast(after), 0) << ir::print(after);
}

TEST(SharedOperand, HeadsOfAGroupAreRowsOfOneProduct) {
  expect_ir(R"(graph(%q: f32[2,6,1,8], %k: f32[2,3,5,8]) {
      %one = reshape(%k) {shape = [2,3,1,5,8]}
      %wide = broadcast(%one) {shape = [2,3,2,5,8], dims = [0,1,2,3,4]}
      %keys = reshape(%wide) {shape = [2,6,5,8]}
      %t = transpose(%keys) {perm = [0,1,3,2]}
      %s = dot(%q, %t) {lhs_batch = [0,1], rhs_batch = [0,1], lhs_contract = [3], rhs_contract = [2]}
      return "s" = %s
    })",
            {"canonicalize", "dce"}, R"(graph(%q: f32[2,6,1,8], %k: f32[2,3,5,8]) {
      %rows = reshape(%q) {shape = [2,3,2,1,8]}
      %d = dot(%rows, %k) {lhs_batch = [0,1], rhs_batch = [0,1], lhs_contract = [4], rhs_contract = [3]}
      %s = reshape(%d) {shape = [2,6,1,5]}
      return "s" = %s
    })");
}

TEST(SharedOperand, OneMatrixForAllBatchesIsNotRepeated) {
  expect_shared(R"(graph(%x: f32[3,4,5,6], %w: f32[6,7]) {
      %wide = broadcast(%w) {shape = [3,4,6,7], dims = [2,3]}
      %y = dot(%x, %wide) {lhs_batch = [0,1], rhs_batch = [0,1], lhs_contract = [3], rhs_contract = [2]}
      return "y" = %y
    })");
}

TEST(SharedOperand, RepeatedLeftSidesAreReadOnce) {
  expect_shared(R"(graph(%k: f32[2,3,40,8], %q: f32[2,6,1,8]) {
      %wide = broadcast(%k) {shape = [2,3,2,40,8], dims = [0,1,3,4]}
      %keys = reshape(%wide) {shape = [2,6,40,8]}
      %s = dot(%keys, %q) {lhs_batch = [0,1], rhs_batch = [0,1], lhs_contract = [3], rhs_contract = [3]}
      return "s" = %s
    })");
}

TEST(SharedOperand, RepetitionsStayWhereCopiesOfRowsWouldBeLarger) {
  const char* text = R"(graph(%q: f32[2,100,6,8], %k: f32[2,3,5,8]) {
      %wide = broadcast(%k) {shape = [2,3,2,5,8], dims = [0,1,3,4]}
      %keys = reshape(%wide) {shape = [2,6,5,8]}
      %s = dot(%q, %keys) {lhs_batch = [0,2], rhs_batch = [0,1], lhs_contract = [3], rhs_contract = [3]}
      return "s" = %s
    })";
  EXPECT_EQ(largest_broadcast(run(text, {"canonicalize"})), 2 * 6 * 5 * 8);
}

// A random dot of two operands, each repeated along random factors of its dimensions and transposed.
std::string random_dot(std::mt19937& random) {
  const auto draw = [&](int n) { return static_cast<int>(random() % static_cast<uint32_t>(n)); };
  struct Dim {
    char role;  // batch, contracted, free
    Shape factors;
  };
  std::vector<Dim> common;
  const auto factors = [&] {
    Shape result(static_cast<size_t>(1 + draw(3)));
    for (int64_t& extent : result) extent = 1 + draw(3);
    return result;
  };
  for (int i = draw(3); i >= 0; --i) common.push_back({'b', factors()});
  for (int i = draw(2); i >= 0; --i) common.push_back({'c', factors()});
  std::string parameters[2], nodes, attrs;
  for (const int side : {0, 1}) {
    std::vector<Dim> dims = common;
    for (int i = draw(3); i > 0; --i) dims.push_back({'f', factors()});
    std::vector<size_t> order(dims.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::shuffle(order.begin(), order.end(), random);
    Shape narrow, wide, merged;
    ir::Ints places, batch, contract;
    for (const size_t i : order) {
      for (const int64_t extent : dims[i].factors) {
        const bool repeats = draw(3) == 0;
        if (!repeats) {
          places.push_back(static_cast<int64_t>(wide.size()));
          narrow.push_back(extent);
        }
        wide.push_back(extent);
      }
      merged.push_back(element_count(dims[i].factors));
    }
    for (size_t i = 0; i < common.size(); ++i) {
      const auto at = std::find(order.begin(), order.end(), i) - order.begin();
      (dims[i].role == 'b' ? batch : contract).push_back(at);
    }
    const char* name = side == 0 ? "lhs" : "rhs";
    parameters[side] = fmt::format("%{}: f32[{}]", name, fmt::join(narrow, ","));
    nodes += fmt::format("%{0}w = broadcast(%{0}) {{shape = [{1}], dims = [{2}]}}\n", name, fmt::join(wide, ","),
                         fmt::join(places, ","));
    nodes += fmt::format("%{0}m = reshape(%{0}w) {{shape = [{1}]}}\n", name, fmt::join(merged, ","));
    attrs += fmt::format("{}{}_batch = [{}], {}_contract = [{}]", side == 0 ? "" : ", ", name, fmt::join(batch, ","),
                         name, fmt::join(contract, ","));
  }
  return fmt::format("graph({}, {}) {{\n{}%y = dot(%lhsm, %rhsm) {{{}}}\nreturn \"y\" = %y\n}}", parameters[0],
                     parameters[1], nodes, attrs);
}

TEST(SharedOperand, RandomProductsStayTheSame) {
  std::mt19937 random(7);
  int rewritten = 0;
  for (int i = 0; i < 300; ++i) {
    const std::string text = random_dot(random);
    SCOPED_TRACE(text);
    const ir::Graph after = run(text, {"canonicalize"});
    ASSERT_NO_FATAL_FAILURE(expect_same(ir::parse(text), after));
    if (largest_broadcast(after) < largest_broadcast(ir::parse(text))) ++rewritten;
  }
  EXPECT_GT(rewritten, 50);
}

}  // namespace
}  // namespace heddle::passes
