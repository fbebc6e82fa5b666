#include <fmt/format.h>

#include <algorithm>

#include "pass_test_util.h"
#include "passes/fusion/fusion.h"
#include "passes/pass.h"

namespace heddle::passes {
namespace {

ir::Graph with_partial_sums(const ir::Graph& graph, const Target& target = Target::cuda_h200(2)) {
  const std::vector<std::string> names = {"epilogue_reductions"};
  return run_passes(graph, names, {target});
}

size_t reductions(const ir::Graph& graph) {
  return static_cast<size_t>(std::count_if(graph.nodes().begin(), graph.nodes().end(),
                                           [](const ir::Node& node) { return node.op == ir::Op::kReduce; }));
}

// tanh(x w) with a million elements, as %1, and what `rest` makes of it.
std::string product(const std::string& dtype, int64_t m, int64_t n, const std::string& rest) {
  return fmt::format(
      "graph(%x: {0}[{1},3], %w: {0}[3,{2}]) {{\n"
      "%0 = dot(%x, %w) {{lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]}}\n"
      "%1 = tanh(%0)\n{3} }}",
      dtype, m, n, rest);
}

TEST(PartialReductions, OfColumnsAndRowsInTwoSteps) {
  for (const char* dims : {"[0]", "[1]"}) {
    for (const char* kind : {"sum", "max", "min"}) {
      const ir::Graph before = ir::parse(
          product("f32", 1024, 1056,
                  fmt::format("%2 = reduce(%1) {{dims = {}, kind = \"{}\"}}\nreturn \"s\" = %2", dims, kind)));
      const ir::Graph after = with_partial_sums(before);
      EXPECT_EQ(reductions(after), 2u);
      expect_same(before, after, 1e-5, 3);
      EXPECT_EQ(reductions(with_partial_sums(before, test_target())), 1u);
    }
  }
}

TEST(PartialReductions, FindTheProductBehindAnyOperand) {
  const ir::Graph before = ir::parse(
      "graph(%r: f32[1024,1024], %x: f32[1024,3], %w: f32[3,1024]) {\n"
      "%0 = dot(%x, %w) {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]}\n"
      "%1 = tanh(%r)\n%2 = add(%1, %0)\n%3 = reduce(%2) {dims = [1], kind = \"sum\"}\nreturn \"s\" = %3 }");
  const ir::Graph after = with_partial_sums(before);
  EXPECT_EQ(reductions(after), 2u);
  expect_same(before, after, 1e-5, 3);
}

TEST(PartialReductions, StayWhereTheyMeetTheProductOrAreNotWhole) {
  const auto count = [](int64_t m, int64_t n, const std::string& rest) {
    return reductions(with_partial_sums(ir::parse(product("f32", m, n, rest))));
  };
  const std::string sum = "%2 = reduce(%1) {dims = [1], kind = \"sum\"}\nreturn \"s\" = %2";
  EXPECT_EQ(count(1024, 1024, sum), 2u);
  EXPECT_EQ(count(64, 64, sum), 1u) << "small";
  EXPECT_EQ(count(1024, 1030, sum), 1u) << "no multiple of 32 columns";
  EXPECT_EQ(count(1030, 1024, "%2 = reduce(%1) {dims = [0], kind = \"sum\"}\nreturn \"s\" = %2"), 1u);
  EXPECT_EQ(count(1024, 1024,
                  "%2 = reduce(%1) {dims = [1], kind = \"max\"}\n%3 = broadcast(%2) {shape = [1024,1024], dims = [0]}\n"
                  "%4 = sub(%1, %3)\nreturn \"y\" = %4"),
            1u)
      << "one region with what reads the product";
  EXPECT_EQ(
      count(1024, 1024, "%2 = reduce(%1) {dims = [0], kind = \"max\"}\n%3 = tanh(%2)\nreturn \"y\" = %1, \"z\" = %3"),
      2u)
      << "the product is a result, too";
}

// Kernels reduce sums of f32; those of f64 and of integers are reduced behind the product.
TEST(PartialReductions, StayWhereSumsAreOfOtherTypes) {
  for (const char* dtype : {"f64", "i32"}) {
    const std::string text = fmt::format(
        "graph(%x: {0}[1024,3], %w: {0}[3,1024]) {{\n"
        "%0 = dot(%x, %w) {{lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]}}\n"
        "%1 = cast(%0) {{to = f32}}\n%2 = reduce(%1) {{dims = [1], kind = \"sum\"}}\nreturn \"s\" = %2 }}",
        dtype);
    EXPECT_EQ(reductions(with_partial_sums(ir::parse(text))), 1u) << dtype;
  }
}

// Neighbours in memory behind a transpose are none of the product's.
TEST(PartialReductions, AreNotTakenBehindATranspose) {
  const ir::Graph graph = ir::parse(
      "graph(%x: f32[64,3], %w: f32[3,64]) {\n"
      "%0 = dot(%x, %w) {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]}\n"
      "%1 = transpose(%0) {perm = [1,0]}\n%2 = reshape(%1) {shape = [64,2,32]}\n"
      "%3 = reduce(%2) {dims = [2], kind = \"sum\"}\nreturn \"t\" = %1, \"s\" = %3 }");
  for (const ir::Group& group : fuse(graph, Target::cuda_h200(2)).groups) {
    if (group.kind != ir::GroupKind::kContraction) continue;
    for (const ir::NodeId id : group.nodes) {
      EXPECT_NE(graph.node(id).op, ir::Op::kReduce);
      EXPECT_NE(graph.node(id).op, ir::Op::kReshape) << "the transposed product is a result, too";
    }
  }
}

// The first step is the epilogue's, and where nothing else reads the product it is not stored.
TEST(PartialReductions, AreBegunInTheEpilogue) {
  const ir::Graph graph = with_partial_sums(
      ir::parse(product("f16", 1024, 1024,
                        "%2 = cast(%1) {to = f32}\n%3 = reduce(%2) {dims = [1], kind = \"sum\"}\n"
                        "%4 = reduce(%1) {dims = [0], kind = \"max\"}\nreturn \"s\" = %3, \"m\" = %4")));
  const ir::Grouping gpu = fuse(graph, Target::cuda_h200(2));
  ASSERT_FALSE(gpu.groups.empty());
  const ir::Group& product_group = gpu.groups.front();
  EXPECT_EQ(product_group.kind, ir::GroupKind::kContraction);
  ASSERT_EQ(product_group.outputs.size(), 2u);
  for (const ir::ValueId v : product_group.outputs) {
    EXPECT_EQ(graph.dtype(v), DType::kF32);
    EXPECT_LE(element_count(graph.shape(v)), 1024 * 1024 / 16);
  }
  const ir::Grouping cpu = fuse(graph, test_target());
  for (const ir::Group& group : cpu.groups) {
    if (group.kind != ir::GroupKind::kContraction) continue;
    for (const ir::NodeId id : group.nodes) EXPECT_NE(graph.node(id).op, ir::Op::kReduce);
  }
}

}  // namespace
}  // namespace heddle::passes
