// Epilogues that also compute results from values in memory alone (passes/fusion/side_values.h): the gradient of an
// activation beside the activation itself.
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

// The gradient of h = silu(g) * u for g and u, from that of h, which is a product; and h again for the gradient of the
// next weight.
std::string text_of(const Backward& p) {
  std::string text = fmt::format(R"(graph g(%x: {0}[{1},{3}], %g: {0}[{1},{2}], %u: {0}[{1},{2}]) {{
      %w = constant {{value = {0}[{3},{2}]{{1}}}}
      %one = constant {{value = f32[]{{1}}}}
      %0 = dot(%x, %w) {{lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]}} : {0}[{1},{2}]
      %1 = cast(%0) {{to = f32}} : f32[{1},{2}]
      %2 = cast(%g) {{to = f32}} : f32[{1},{2}]
      %3 = cast(%u) {{to = f32}} : f32[{1},{2}]
      %4 = broadcast(%one) {{shape = [{1},{2}], dims = []}} : f32[{1},{2}]
      %5 = neg(%2) : f32[{1},{2}]
      %6 = exp(%5) : f32[{1},{2}]
      %7 = add(%4, %6) : f32[{1},{2}]
      %8 = div(%4, %7) : f32[{1},{2}]
      %9 = mul(%2, %8) : f32[{1},{2}]
      %10 = mul(%9, %3) : f32[{1},{2}]
      %11 = cast(%10) {{to = {0}}} : {0}[{1},{2}]
      %12 = mul(%1, %9) : f32[{1},{2}]
      %13 = cast(%12) {{to = {0}}} : {0}[{1},{2}]
      %14 = sub(%4, %8) : f32[{1},{2}]
      %15 = mul(%2, %14) : f32[{1},{2}]
      %16 = add(%4, %15) : f32[{1},{2}]
      %17 = mul(%8, %16) : f32[{1},{2}]
      %18 = mul(%1, %3) : f32[{1},{2}]
      %19 = mul(%18, %17) : f32[{1},{2}]
      %20 = cast(%19) {{to = {0}}} : {0}[{1},{2}]
)",
                                 p.type, p.m, p.n, p.k);
  if (!p.summed) return text + "return \"u\" = %13, \"g\" = %20, \"h\" = %11 }";
  return text + fmt::format(R"(
      %21 = reshape(%20) {{shape = [{1},16,{2}]}} : {0}[{1},16,{2}]
      %22 = cast(%21) {{to = f32}} : f32[{1},16,{2}]
      %23 = reduce(%22) {{dims = [1], kind = "sum"}}
      return "g" = %20, "h" = %11, "rows" = %23 }})",
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
