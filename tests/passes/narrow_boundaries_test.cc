// What kernels of a GPU hand to each other in 16 bits (passes/fusion/narrow_boundaries.h).
#include <fmt/format.h>

#include <algorithm>

#include "pass_test_util.h"
#include "passes/fusion/fusion.h"
#include "passes/pass.h"

namespace heddle::passes {
namespace {

PassContext for_gpu(const Target& gpu, Precision precision) {
  return {gpu, precision, nullptr, [&gpu](const ir::Graph& graph) { return fuse(graph, gpu); }};
}

// The types of the values that pass between the groups of a graph. Outputs of the graph are left out, and what is made
// of its parameters alone.
std::vector<DType> handed_over(const ir::Graph& graph, const ir::Grouping& grouping) {
  std::vector<DType> types;
  for (const ir::Group& group : grouping.groups) {
    for (const ir::ValueId v : group.outputs) {
      const bool returned = std::any_of(graph.outputs().begin(), graph.outputs().end(),
                                        [&](const ir::Graph::Port& port) { return port.value == v; });
      const ir::Node& made = graph.producer(v);
      const bool of_parameter = made.op == ir::Op::kCast && graph.producer(made.inputs[0]).op == ir::Op::kParameter;
      if (!returned && !of_parameter) types.push_back(graph.dtype(v));
    }
  }
  return types;
}

// A sum of squares over the rows of `what`, with which it is multiplied: two kernels need it.
std::string scaled(const std::string& what, int64_t rows) {
  return fmt::format(R"(graph(%x: f32[{0},64], %w: f32[64,64]) {{
    %d = dot(%x, %w) {{lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]}}
    %t = {1}(%d)
    %s = mul(%t, %t)
    %r = reduce(%s) {{dims = [0], kind = "sum"}}
    %b = broadcast(%r) {{dims = [1], shape = [{0},64]}}
    %y = mul(%t, %b)
    return "y" = %y
  }})", rows, what);
}

ir::Graph narrowed(const std::string& text, Precision precision = Precision::kF16) {
  const Target gpu = Target::cuda_h200(1);
  const ir::Graph wide = run_passes(ir::parse(text), std::vector<std::string>{"precision"}, {gpu, precision});
  ir::Graph narrow = run_passes(wide, std::vector<std::string>{"narrow_boundaries"}, for_gpu(gpu, precision));
  expect_same(wide, narrow, precision == Precision::kBF16 ? 3e-2 : 3e-3);
  return narrow;
}

TEST(NarrowBoundaries, AnActivationThatAReductionReadsIsStoredInSixteenBits) {
  const Target gpu = Target::cuda_h200(1);
  for (const Precision precision : {Precision::kF16, Precision::kBF16}) {
    const DType narrow = precision == Precision::kF16 ? DType::kF16 : DType::kBF16;
    const ir::Graph graph = narrowed(scaled("tanh", 4096), precision);
    const ir::Grouping grouping = fuse(graph, gpu);
    EXPECT_EQ(handed_over(graph, grouping), std::vector{narrow});
  }
}

TEST(NarrowBoundaries, WhatMayLeaveTheRangeOrIsSmallStaysWide) {
  const Target gpu = Target::cuda_h200(1);
  for (const std::string& text : {scaled("exp", 4096), scaled("tanh", 60)}) {
    const ir::Graph graph = narrowed(text);
    EXPECT_EQ(handed_over(graph, fuse(graph, gpu)), std::vector{DType::kF32});
  }
}

TEST(NarrowBoundaries, NothingChangesWithoutGroupsOrInF32) {
  const Target gpu = Target::cuda_h200(1);
  const ir::Graph graph = ir::parse(scaled("tanh", 4096));
  const std::vector<std::string> pass = {"narrow_boundaries"};
  EXPECT_EQ(ir::print(run_passes(graph, pass, {gpu, Precision::kF16})), ir::print(graph));
  EXPECT_EQ(ir::print(run_passes(graph, pass, for_gpu(gpu, Precision::kF32))), ir::print(graph));
}

}  // namespace
}  // namespace heddle::passes
