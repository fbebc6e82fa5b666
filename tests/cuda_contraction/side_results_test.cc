// Epilogues that also compute results from values in memory alone (passes/fusion/operand_producers.h): the gradient of
// an activation with the activation itself.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "testing.h"

namespace heddle::testing {
namespace {

struct Backward {
  std::string type;
  int64_t m, n, k;
  bool summed = true;  // rows of the gradient are summed, as for a bias
};

// The gradient of h = relu(g)^2 * u for g and u, from that of h, which is a product; and h again for the gradient of
// the next weight.
std::string text_of(const Backward& p) {
  std::string text = fmt::format(R"(graph g(%x: {0}[{1},{3}], %g: {0}[{1},{2}], %u: {0}[{1},{2}]) {{
      %w = constant {{value = {0}[{3},{2}]{{1}}}}
      %zero = constant {{value = f32[]{{0}}}}
      %two = constant {{value = f32[]{{2}}}}
      %0 = dot(%x, %w) {{lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]}} : {0}[{1},{2}]
      %1 = cast(%0) {{to = f32}} : f32[{1},{2}]
      %2 = cast(%g) {{to = f32}} : f32[{1},{2}]
      %3 = cast(%u) {{to = f32}} : f32[{1},{2}]
      %4 = broadcast(%zero) {{shape = [{1},{2}], dims = []}} : f32[{1},{2}]
      %5 = max(%2, %4) : f32[{1},{2}]
      %6 = mul(%5, %5) : f32[{1},{2}]
      %7 = mul(%6, %3) : f32[{1},{2}]
      %8 = cast(%7) {{to = {0}}} : {0}[{1},{2}]
      %9 = mul(%1, %6) : f32[{1},{2}]
      %10 = cast(%9) {{to = {0}}} : {0}[{1},{2}]
      %11 = broadcast(%two) {{shape = [{1},{2}], dims = []}} : f32[{1},{2}]
      %12 = mul(%5, %11) : f32[{1},{2}]
      %13 = mul(%12, %3) : f32[{1},{2}]
      %14 = mul(%1, %13) : f32[{1},{2}]
      %15 = cast(%14) {{to = {0}}} : {0}[{1},{2}]
)",
                                 p.type, p.m, p.n, p.k);
  if (!p.summed) return text + "return \"u\" = %10, \"g\" = %15, \"h\" = %8 }";
  return text + fmt::format(R"(
      %21 = reshape(%15) {{shape = [{1},16,{2}]}} : {0}[{1},16,{2}]
      %22 = cast(%21) {{to = f32}} : f32[{1},16,{2}]
      %23 = reduce(%22) {{dims = [1], kind = "sum"}}
      return "g" = %15, "h" = %8, "rows" = %23 }})",
                            p.type, p.m / 16, p.n);
}

void add(CudaBatch& batch, const std::string& algorithm, std::initializer_list<Backward> graphs, int sm = 90,
         unsigned skip = 0) {
  for (const Backward& p : graphs) {
    CudaBatch::Options options;
    options.family = algorithm, options.sm = sm, options.skip = skip;
    options.tolerance = p.type == "f16" ? 4e-3 : 3.2e-2;
    batch.add(fmt::format("{} {} {}x{}x{}", algorithm, p.type, p.m, p.n, p.k), text_of(p), options);
  }
}

TEST(CudaSideResults, GradientsOfActivations) {
  CudaBatch batch;
  for (unsigned skip = 0; skip < 3; ++skip) {
    add(batch, "wgmma", {{"bf16", 272, 288, 72}, {"f16", 208, 203, 64}, {"f16", 147, 320, 64, false}}, 90, skip);
  }
  for (const int sm : {80, 90}) add(batch, "mma", {{"bf16", 144, 96, 72}, {"f16", 29, 51, 24, false}}, sm);
  add(batch, "cluster_splitk", {{"bf16", 96, 64, 512, false}});
  add(batch, "unaligned", {{"f16", 65, 33, 129, false}});
  batch.run();
  batch.compile();
}

TEST(CudaSideResults, LargeTilesDoNotSpill) {
  CudaBatch batch;
  for (unsigned skip = 0; skip < 3; ++skip) {
    add(batch, "wgmma", {{"bf16", 4096, 3072, 768}, {"f16", 12544, 1536, 384, false}}, 90, skip);
  }
  batch.compile();
}

}  // namespace
}  // namespace heddle::testing
