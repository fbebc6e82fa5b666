// What kernels of a GPU hand to each other: in 16 bits, or not at all (passes/boundaries/).
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
  }})",
                     rows, what);
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

const std::vector<std::string> kPass = {"recompute_boundaries"};

// Bytes of the values that pass between the groups of a graph.
int64_t bytes_handed_over(const ir::Graph& graph, const Target& gpu) {
  int64_t bytes = 0;
  for (const ir::Group& group : fuse(graph, gpu).groups) {
    for (const ir::ValueId v : group.outputs) bytes += element_count(graph.shape(v)) * size_of(graph.dtype(v));
  }
  return bytes;
}

// Gradients of (tanh(f) * z) @ w, where f is computed from saved values: two products read the activation or what is
// multiplied with it, and the gradient of f, which waits for one of them, reads 1 - tanh(f)^2.
std::string gradients(int64_t rows, std::string_view saved, std::string_view f) {
  return fmt::format(
      R"(graph(%dy: bf16[{0},128], %w: bf16[256,128], %x: {1}[{0},256], %y: {1}[{0},256], %z: bf16[{0},256]) {{
    %f = {2}
    %t = tanh(%f)
    %a = cast(%t) {{to = bf16}}
    %p = mul(%a, %z)
    %dw = dot(%p, %dy) {{lhs_batch = [], rhs_batch = [], lhs_contract = [0], rhs_contract = [0]}}
    %dp = dot(%dy, %w) {{lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [1]}}
    %dz = mul(%dp, %a)
    %da = mul(%dp, %z)
    %wide = cast(%da) {{to = f32}}
    %c = constant {{value = f32[]{{1.0}}}}
    %one = broadcast(%c) {{dims = [], shape = [{0},256]}}
    %s = mul(%t, %t)
    %slope = sub(%one, %s)
    %df = mul(%wide, %slope)
    return "dw" = %dw, "dz" = %dz, "df" = %df
  }})",
      rows, saved, f);
}

std::string of_one_value(int64_t rows) {
  return gradients(rows, "bf16", "cast(%x) {to = f32}");
}

TEST(RecomputeBoundaries, TheGradientOfAnActivationReadsItsOperandInsteadOfWhatTheActivationStored) {
  const Target gpu = Target::cuda_h200(1);
  const ir::Graph before = ir::parse(of_one_value(1100)),
                  after = run_passes(before, kPass, for_gpu(gpu, Precision::kF32));
  expect_same(before, after, 1e-6);
  constexpr int64_t kSlope = 1100 * 256 * 4;
  EXPECT_EQ(bytes_handed_over(before, gpu) - bytes_handed_over(after, gpu), kSlope);
}

TEST(RecomputeBoundaries, NothingChangesWhereItWouldReadMoreOrHardlyLess) {
  const Target gpu = Target::cuda_h200(1);
  for (const std::string& text : {of_one_value(64), gradients(4095, "f32", "add(%x, %y)")}) {
    const ir::Graph graph = ir::parse(text);
    EXPECT_EQ(ir::print(run_passes(graph, kPass, for_gpu(gpu, Precision::kF32))), ir::print(graph));
  }
}

TEST(RecomputeBoundaries, NothingChangesWithoutGroupsOrOnACpu) {
  const Target gpu = Target::cuda_h200(1), cpu = Target::host_cpu(1);
  const ir::Graph graph = ir::parse(of_one_value(1100));
  EXPECT_EQ(ir::print(run_passes(graph, kPass, {gpu})), ir::print(graph));
  EXPECT_EQ(ir::print(run_passes(graph, kPass, for_gpu(cpu, Precision::kF32))), ir::print(graph));
}

}  // namespace
}  // namespace heddle::passes
