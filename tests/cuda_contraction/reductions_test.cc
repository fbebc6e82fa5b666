// Reductions of neighbours in the epilogues of products: the first of two steps
// (passes/contraction/epilogue_reductions.h).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "testing.h"

namespace heddle::testing {
namespace {

struct Product {
  std::string type;
  int64_t m, n, k;
  std::string kind = "sum";  // of the reductions
  bool stored = true;        // the product is a result, too
};

// relu(x w + bias) with the maxima, sums ... of 32 columns of each row (where they are multiples) and of 16 rows.
std::string text_of(const Product& p) {
  const bool columns = p.n % 32 == 0, rows = p.m % 16 == 0;
  std::string text = fmt::format(R"(graph g(%x: {0}[{1},{3}]) {{
      %w = constant {{value = {0}[{3},{2}]{{1}}}}
      %b = constant {{value = {0}[{2}]{{1}}}}
      %z = constant {{value = {0}[]{{0}}}}
      %0 = dot(%x, %w) {{lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]}} : {0}[{1},{2}]
      %1 = broadcast(%b) {{shape = [{1},{2}], dims = [1]}} : {0}[{1},{2}]
      %2 = add(%0, %1) : {0}[{1},{2}]
      %3 = broadcast(%z) {{shape = [{1},{2}], dims = []}} : {0}[{1},{2}]
      %4 = max(%2, %3) : {0}[{1},{2}]
)",
                                 p.type, p.m, p.n, p.k);
  std::string outputs = p.stored ? "\"y\" = %4" : "";
  const auto add = [&](const char* name, const std::string& split, int dim, const std::string& value) {
    text += fmt::format("%{0}0 = reshape({1}) {{shape = {2}}} : {3}{2}\n", name, value, split, p.type);
    if (p.type != "f32") text += fmt::format("%{0}1 = cast(%{0}0) {{to = f32}} : f32{1}\n", name, split);
    text += fmt::format("%{0} = reduce(%{0}{1}) {{dims = [{2}], kind = \"{3}\"}}\n", name, p.type == "f32" ? 0 : 1, dim,
                        p.kind);
    outputs += fmt::format("{0}\"{1}\" = %{1}", outputs.empty() ? "" : ", ", name);
  };
  if (columns) add("columns", fmt::format("[{},{},32]", p.m, p.n / 32), 2, "%4");
  if (rows) add("rows", fmt::format("[{},16,{}]", p.m / 16, p.n), 1, "%2");
  return text + "return " + outputs + " }";
}

constexpr Product kAligned[] = {{"f16", 144, 96, 72}, {"bf16", 48, 288, 40}, {"f32", 160, 128, 36}};

void add_products(CudaBatch& batch, const std::string& algorithm, std::initializer_list<Product> products, int sm,
                  unsigned skip) {
  for (const Product& p : products) {
    CudaBatch::Options options;
    options.family = algorithm, options.sm = sm, options.skip = skip;
    options.tolerance = p.type == "f32" ? 1e-5 : p.type == "f16" ? 2e-3 : 1.6e-2;
    batch.add(fmt::format("{} {} {}x{}x{} {}", algorithm, p.type, p.m, p.n, p.k, p.kind), text_of(p), options);
  }
}

TEST(CudaReductions, MmaOfEveryDevice) {
  CudaBatch batch;
  for (const int sm : {80, 90}) {
    for (unsigned skip = 0; skip < 3; ++skip) {
      add_products(batch, "mma",
                   {{"f16", 144, 96, 72},
                    {"bf16", 48, 288, 40, "max"},
                    {"f32", 160, 128, 36, "min", false},
                    {"f16", 29, 64, 24},
                    {"f16", 80, 51, 40}},
                   sm, skip);
    }
  }
  batch.run();
  batch.compile();
}

// Tiles of whole widths and odd ones, by two warpgroups together and in turns; what TMA stores, threads
// store, and nobody does.
TEST(CudaReductions, Wgmma) {
  CudaBatch batch;
  for (unsigned skip = 0; skip < 5; ++skip) {
    add_products(batch, "wgmma",
                 {{"f16", 400, 288, 136},
                  {"bf16", 272, 352, 72, "max", false},
                  {"f16", 147, 320, 64, "min"},
                  {"f16", 208, 203, 64},
                  {"f32", 160, 128, 36, "sum"}},
                 90, skip);
  }
  batch.run();
  batch.compile();
}

TEST(CudaReductions, Batches) {
  CudaBatch batch;
  for (const char* algorithm : {"wgmma", "mma"}) {
    CudaBatch::Options options;
    options.family = algorithm, options.tolerance = 2e-3;
    batch.add(algorithm, R"(graph g(%x: f16[3,48,40], %w: f16[3,40,64]) {
      %0 = dot(%x, %w) {lhs_batch = [0], rhs_batch = [0], lhs_contract = [2], rhs_contract = [1]}
      %1 = reshape(%0) {shape = [144,2,32]}
      %2 = cast(%1) {to = f32}
      %3 = reduce(%2) {dims = [2], kind = "max"}
      %4 = reshape(%0) {shape = [9,16,64]}
      %5 = cast(%4) {to = f32}
      %6 = reduce(%5) {dims = [1], kind = "sum"}
      return "columns" = %3, "rows" = %6
    })",
              options);
  }
  batch.run();
  batch.compile();
}

// The picks for large products, which the emulator would take long to run.
TEST(CudaReductions, LargeTilesDoNotSpill) {
  CudaBatch batch;
  for (unsigned skip = 0; skip < 4; ++skip) {
    for (const char* algorithm : {"wgmma", "wgmma_gather"}) {
      add_products(batch, algorithm, {{"f16", 4096, 4096, 128}, {"bf16", 4096, 4096, 136, "max", false}}, 90, skip);
    }
  }
  batch.compile();
}

// Statistics of channels.
TEST(CudaReductions, Convolutions) {
  CudaBatch batch;
  for (const char* algorithm : {"wgmma_im2col", "wgmma_gather", "mma"}) {
    CudaBatch::Options options;
    options.family = algorithm, options.tolerance = 2e-3;
    batch.add(algorithm, R"(graph g(%x: f16[2,12,12,64]) {
      %w = constant {value = f16[96,64,3,3]{1}}
      %0 = conv(%x, %w) {strides = [1,1], low = [1,1], high = [1,1], dilations = [1,1], lhs_dilations = [1,1],
                         groups = 1, layout = "nhwc"} : f16[2,12,12,96]
      %1 = mul(%0, %0) : f16[2,12,12,96]
      %2 = reshape(%0) {shape = [18,16,96]}
      %3 = cast(%2) {to = f32}
      %4 = reduce(%3) {dims = [1], kind = "sum"}
      %5 = reshape(%1) {shape = [18,16,96]}
      %6 = cast(%5) {to = f32}
      %7 = reduce(%6) {dims = [1], kind = "sum"}
      return "y" = %0, "sums" = %4, "squares" = %7
    })",
              options);
  }
  batch.run();
  batch.compile();
}

TEST(CudaReductions, OperandsThroughViews) {
  CudaBatch batch;
  add_products(batch, "wgmma_gather", {{"f16", 144, 96, 75}, {"bf16", 48, 288, 33, "max"}}, 90, 0);
  batch.run();
  batch.compile();
}

}  // namespace
}  // namespace heddle::testing
