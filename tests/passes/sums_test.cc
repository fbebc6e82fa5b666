// Passes for the sake of sums: long_dots, unroll_reductions, centre_means.
#include <algorithm>

#include "pass_test_util.h"

namespace heddle::passes {
namespace {

int nodes_of(const ir::Graph& graph, ir::Op op) {
  return static_cast<int>(
      std::count_if(graph.nodes().begin(), graph.nodes().end(), [&](const ir::Node& node) { return node.op == op; }));
}

// What long_dots makes of a product on so many threads, which computes the same.
ir::Graph long_dots_of(const std::string& text, int threads) {
  Target target;
  target.cpu.threads = threads;
  const ir::Graph before = ir::parse(text);
  const std::vector<std::string> passes = {"long_dots"};
  ir::Graph after = run_passes(before, passes, {target, Precision::kF32});
  expect_same(before, after);
  return after;
}

TEST(LongDots, ProductsWithAVectorAreSumsOfProducts) {
  for (const char* text : {
           R"(graph(%a: f32[1,5000], %b: f32[5000,1]) {
             %y = dot(%a, %b) {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]}
             return "y" = %y
           })",
           R"(graph(%a: f32[3,5003], %b: f32[5003,1]) {
             %y = dot(%a, %b) {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]}
             return "y" = %y
           })",
           R"(graph(%a: f16[2,1,4100], %b: f16[2,6,4100]) {
             %y = dot(%a, %b) {lhs_batch = [0], rhs_batch = [0], lhs_contract = [2], rhs_contract = [2]}
             return "y" = %y
           })",
       }) {
    const ir::Graph after = long_dots_of(text, 1);
    EXPECT_EQ(nodes_of(after, ir::Op::kDot), 0) << text;
    EXPECT_EQ(nodes_of(after, ir::Op::kReduce), 1) << text;
  }
}

TEST(LongDots, FewResultsAreMadeInPartsForEachThread) {
  const std::string whole = R"(graph(%a: f32[3,40000], %b: f32[40000,5]) {
    %y = dot(%a, %b) {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]}
    return "y" = %y
  })";
  const std::string rest = R"(graph(%a: f32[2,30001,3], %b: f32[2,5,30001]) {
    %y = dot(%a, %b) {lhs_batch = [0], rhs_batch = [0], lhs_contract = [1], rhs_contract = [2]}
    return "y" = %y
  })";
  EXPECT_EQ(nodes_of(long_dots_of(whole, 2), ir::Op::kReduce), 1);
  EXPECT_EQ(nodes_of(long_dots_of(whole, 1), ir::Op::kReduce), 0);
  EXPECT_EQ(nodes_of(long_dots_of(rest, 4), ir::Op::kDot), 2);
  EXPECT_EQ(nodes_of(long_dots_of(rest, 2), ir::Op::kReduce), 0);  // two batches are a task for each
}

TEST(LongDots, OthersStay) {
  for (const char* text : {
           R"(graph(%a: f32[1,64], %b: f32[64,1]) {
             %y = dot(%a, %b) {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]}
             return "y" = %y
           })",
           R"(graph(%a: f32[30,5000], %b: f32[5000,64]) {
             %y = dot(%a, %b) {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]}
             return "y" = %y
           })",
       }) {
    EXPECT_EQ(nodes_of(long_dots_of(text, 2), ir::Op::kReduce), 0) << text;
  }
}

TEST(CentreMeans, MeansOfSquaredDeviationsAreCorrected) {
  const std::string text = R"(graph(%x: f32[3,70,5]) {
    %n = constant {value = f32[]{70}}
    %c = broadcast(%n) {shape = [3,5], dims = []}
    %s = reduce(%x) {kind = "sum", dims = [1]}
    %m = div(%s, %c)
    %b = broadcast(%m) {shape = [3,70,5], dims = [0,2]}
    %d = sub(%x, %b)
    %q = mul(%d, %d)
    %v = reduce(%q) {kind = "sum", dims = [1]}
    return "d" = %d, "v" = %v, "m" = %m
  })";
  const ir::Graph before = ir::parse(text), after = run(text, {"centre_means"});
  expect_same(before, after);
  EXPECT_EQ(nodes_of(after, ir::Op::kReduce), 3);
}

TEST(CentreMeans, WhatIsNoVarianceStays) {
  // Another dimension, another count, a product of two different values.
  for (const char* change :
       {"%v = reduce(%q) {kind = \"sum\", dims = [1]}", "%k = constant {value = f32[]{5}}", "%q = mul(%d, %x)"}) {
    std::string text = R"(graph(%x: f32[6,6]) {
    %k = constant {value = f32[]{6}}
    %c = broadcast(%k) {shape = [6], dims = []}
    %s = reduce(%x) {kind = "sum", dims = [0]}
    %m = div(%s, %c)
    %b = broadcast(%m) {shape = [6,6], dims = [1]}
    %d = sub(%x, %b)
    %q = mul(%d, %d)
    %v = reduce(%q) {kind = "sum", dims = [0]}
    return "v" = %v, "d" = %d
  })";
    const std::string name = std::string(change).substr(0, 5);
    const size_t at = text.find(name), end = text.find('\n', at);
    text.replace(at, end - at, change);
    EXPECT_EQ(nodes_of(run(text, {"centre_means"}), ir::Op::kReduce), 2) << change;
  }
}

ir::Graph unrolled(const std::string& text) {
  const std::vector<std::string> passes = {"unroll_reductions"};
  return run_passes(ir::parse(text), passes, {Target::cuda_h200(), Precision::kF32});
}

// The branches of a network are summed, then the pixels. The first sum is rounded to f16 as the reduction rounds it.
TEST(UnrollReductions, OfAFewTermsThatAreReducedAgain) {
  const auto text = [](const std::string& kind, const std::string& terms) {
    return "graph(%x: f16[3,7,5," + terms + ",6]) { %0 = reduce(%x) {kind = \"" + kind +
           "\", dims = [3]} %1 = cast(%0) {to = f32} %2 = reduce(%1) {kind = \"sum\", dims = [1,2]} return \"y\" = %2, "
           "\"z\" = %0 }";
  };
  for (const char* kind : {"sum", "max", "min", "prod"}) {
    for (const char* terms : {"2", "3", "4"}) {
      const ir::Graph before = ir::parse(text(kind, terms)), after = unrolled(text(kind, terms));
      expect_same(before, after, 0);
      EXPECT_EQ(nodes_of(after, ir::Op::kReduce), 1) << kind << terms;
    }
  }
  EXPECT_EQ(nodes_of(unrolled(text("sum", "5")), ir::Op::kReduce), 2);
}

TEST(UnrollReductions, LeavesTheOnlyReductionAndNeighbours) {
  const auto reductions = [](const std::string& text) { return nodes_of(unrolled(text), ir::Op::kReduce); };
  EXPECT_EQ(reductions(R"(graph(%x: f32[9,2,6]) {
    %0 = reduce(%x) {kind = "sum", dims = [1]} %1 = exp(%0) return "y" = %1 })"),
            1);
  EXPECT_EQ(reductions(R"(graph(%x: f32[9,6,2]) {
    %0 = reduce(%x) {kind = "sum", dims = [2]} %1 = reduce(%0) {kind = "max", dims = [1]} return "y" = %1 })"),
            2);
}

}  // namespace
}  // namespace heddle::passes
