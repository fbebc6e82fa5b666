// What a kernel of a GPU computes again instead of reading it (passes/fusion/recompute_boundaries.h).
#include <fmt/format.h>

#include <algorithm>

#include "pass_test_util.h"
#include "passes/fusion/fusion.h"
#include "passes/pass.h"

namespace heddle::passes {
namespace {

const std::vector<std::string> kPass = {"recompute_boundaries"};

PassContext for_gpu(const Target& gpu) {
  return {gpu, Precision::kF32, nullptr, [&gpu](const ir::Graph& graph) { return fuse(graph, gpu); }};
}

// Bytes of the values that pass between the groups of a graph.
int64_t handed_over(const ir::Graph& graph, const Target& gpu) {
  int64_t bytes = 0;
  for (const ir::Group& group : fuse(graph, gpu).groups) {
    for (const ir::ValueId v : group.outputs) bytes += element_count(graph.shape(v)) * size_of(graph.dtype(v));
  }
  return bytes;
}

// Gradients of (tanh(f) * z) @ w, where f is computed from saved values: two products read the activation or what is
// multiplied with it, and the gradient of f, which waits for one of them, reads 1 - tanh(f)^2.
std::string gradients(int64_t rows, std::string_view saved, std::string_view f) {
  return fmt::format(R"(graph(%dy: bf16[{0},128], %w: bf16[256,128], %x: {1}[{0},256], %y: {1}[{0},256], %z: bf16[{0},256]) {{
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
  const ir::Graph before = ir::parse(of_one_value(1100)), after = run_passes(before, kPass, for_gpu(gpu));
  expect_same(before, after, 1e-6);
  constexpr int64_t kSlope = 1100 * 256 * 4;
  EXPECT_EQ(handed_over(before, gpu) - handed_over(after, gpu), kSlope);
}

TEST(RecomputeBoundaries, NothingChangesWhereItWouldReadMoreOrHardlyLess) {
  const Target gpu = Target::cuda_h200(1);
  for (const std::string& text : {of_one_value(64), gradients(4095, "f32", "add(%x, %y)")}) {
    const ir::Graph graph = ir::parse(text);
    EXPECT_EQ(ir::print(run_passes(graph, kPass, for_gpu(gpu))), ir::print(graph));
  }
}

TEST(RecomputeBoundaries, NothingChangesWithoutGroupsOrOnACpu) {
  const Target gpu = Target::cuda_h200(1), cpu = Target::host_cpu(1);
  const ir::Graph graph = ir::parse(of_one_value(1100));
  EXPECT_EQ(ir::print(run_passes(graph, kPass, {gpu})), ir::print(graph));
  EXPECT_EQ(ir::print(run_passes(graph, kPass, for_gpu(cpu))), ir::print(graph));
}

}  // namespace
}  // namespace heddle::passes
