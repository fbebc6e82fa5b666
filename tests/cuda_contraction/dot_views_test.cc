// Matrix products on the emulated GPU whose operands are views of memory: every family that reads through them.
#include <fmt/format.h>

#include "testing.h"

namespace heddle {
namespace {

using testing::CudaBatch;

TEST(CudaDot, Views) {
  CudaBatch batch;
  batch.add("heads as strides", R"(graph g(%q: f32[2,11,96], %k: f32[2,13,96], %m: f32[2,13]) {
      %s = constant {value = f32[]{0.125}}
      %0 = reshape(%q) {shape = [2,11,3,32]} : f32[2,11,3,32]
      %1 = transpose(%0) {perm = [0,2,1,3]} : f32[2,3,11,32]
      %2 = reshape(%k) {shape = [2,13,3,32]} : f32[2,13,3,32]
      %3 = transpose(%2) {perm = [0,2,3,1]} : f32[2,3,32,13]
      %4 = dot(%1, %3) {lhs_batch = [0,1], rhs_batch = [0,1], lhs_contract = [3], rhs_contract = [2]} : f32[2,3,11,13]
      %5 = broadcast(%s) {shape = [2,3,11,13], dims = []} : f32[2,3,11,13]
      %6 = mul(%4, %5) : f32[2,3,11,13]
      %7 = broadcast(%m) {shape = [2,3,11,13], dims = [0,3]} : f32[2,3,11,13]
      %8 = add(%6, %7) : f32[2,3,11,13]
      return "y" = %8
    })");
  batch.add("context back to rows", R"(graph g(%p: f32[2,3,11,13], %v: f32[2,3,13,32]) {
      %0 = dot(%p, %v) {lhs_batch = [0,1], rhs_batch = [0,1], lhs_contract = [3], rhs_contract = [2]} : f32[2,3,11,32]
      %1 = transpose(%0) {perm = [0,2,1,3]} : f32[2,11,3,32]
      %2 = reshape(%1) {shape = [22,96]} : f32[22,96]
      return "y" = %2
    })");
  batch.add("a slice", R"(graph g(%x: f32[9,50]) {
      %w = constant {value = f32[33,20]{1}}
      %0 = slice(%x) {starts = [1,5], limits = [8,38], strides = [1,1]} : f32[7,33]
      %1 = dot(%0, %w) {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]} : f32[7,20]
      return "y" = %1
    })");
  batch.add("vectors", R"(graph g(%x: f32[67], %y: f32[67]) {
      %0 = dot(%x, %y) {lhs_batch = [], rhs_batch = [], lhs_contract = [0], rhs_contract = [0]} : f32[]
      return "y" = %0
    })");
  batch.add("outer product", R"(graph g(%x: f32[67], %y: f32[45]) {
      %0 = dot(%x, %y) {lhs_batch = [], rhs_batch = [], lhs_contract = [], rhs_contract = []} : f32[67,45]
      return "y" = %0
    })");
  batch.add("computed operands", R"(graph g(%x: f32[3,5,7,4], %y: f32[4,6,5,9]) {
      %0 = dot(%x, %y) {lhs_batch = [], rhs_batch = [], lhs_contract = [1,3], rhs_contract = [2,0]} : f32[3,7,6,9]
      return "y" = %0
    })");
  batch.add("batches in the middle", R"(graph g(%x: f32[5,3,7], %y: f32[7,9,3]) {
      %0 = dot(%x, %y) {lhs_batch = [1], rhs_batch = [2], lhs_contract = [2], rhs_contract = [0]} : f32[3,5,9]
      return "y" = %0
    })");
  batch.add("broadcast batches", R"(graph g(%x: f32[4,3,7,5], %y: f32[7,9]) {
      %t = transpose(%x) {perm = [0,1,3,2]} : f32[4,3,5,7]
      %0 = broadcast(%y) {shape = [4,3,7,9], dims = [2,3]} : f32[4,3,7,9]
      %1 = dot(%t, %0) {lhs_batch = [0,1], rhs_batch = [0,1], lhs_contract = [3], rhs_contract = [2]} : f32[4,3,5,9]
      %2 = neg(%1) : f32[4,3,5,9]
      return "y" = %2
    })");
  batch.add("batched weights", R"(graph g(%x: f32[3,5,7]) {
      %w = constant {value = f32[3,7,33]{1}}
      %0 = dot(%x, %w) {lhs_batch = [0], rhs_batch = [0], lhs_contract = [2], rhs_contract = [1]} : f32[3,5,33]
      return "y" = %0
    })");
  batch.run();
  batch.compile();
}

// Rows and k of several strides each are views of memory still: windows of an image, heads that become one k, columns.
void add_merged(CudaBatch& batch, const std::string& type, const CudaBatch::Options& options) {
  const std::string sums = type == "i8" ? "i32" : type;
  const auto add = [&](const char* name, const char* text) {
    batch.add(fmt::format("{} {} {}", type, options.family, name),
              fmt::format(fmt::runtime(text), fmt::arg("t", type), fmt::arg("s", sums)), options);
  };
  add("windows", R"(graph g(%x: {t}[3,10,15,24], %w: {t}[24,40]) {{
      %0 = reshape(%x) {{shape = [3,2,5,3,5,24]}} : {t}[3,2,5,3,5,24]
      %1 = transpose(%0) {{perm = [0,1,3,2,4,5]}} : {t}[3,2,3,5,5,24]
      %2 = dot(%1, %w) {{lhs_batch = [], rhs_batch = [], lhs_contract = [5], rhs_contract = [0]}} : {s}[3,2,3,5,5,40]
      return "y" = %2
    }})");
  add("heads along k", R"(graph g(%x: {t}[2,3,37,32], %w: {t}[96,72]) {{
      %0 = transpose(%x) {{perm = [0,2,1,3]}} : {t}[2,37,3,32]
      %1 = reshape(%w) {{shape = [3,32,72]}} : {t}[3,32,72]
      %2 = dot(%0, %1) {{lhs_batch = [], rhs_batch = [], lhs_contract = [2,3], rhs_contract = [0,1]}} : {s}[2,37,72]
      return "y" = %2
    }})");
  add("columns and batches", R"(graph g(%x: {t}[4,33,20], %y: {t}[4,3,20,9,5]) {{
      %0 = dot(%x, %y) {{lhs_batch = [0], rhs_batch = [0], lhs_contract = [2], rhs_contract = [2]}} : {s}[4,33,3,9,5]
      return "y" = %0
    }})");
  add("contiguous rows", R"(graph g(%x: {t}[3,64,5,80], %w: {t}[64,72]) {{
      %0 = slice(%x) {{starts = [0,0,0,0], limits = [3,64,4,72], strides = [1,1,1,1]}} : {t}[3,64,4,72]
      %1 = dot(%0, %w) {{lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]}} : {s}[3,4,72,72]
      return "y" = %1
    }})");
}

TEST(CudaDot, RowsAndKOfSeveralStrides) {
  CudaBatch batch;
  const CudaBatch::Options half{.tolerance = 2e-3};
  const auto family = [&](CudaBatch::Options options, const char* name) {
    options.family = name;
    return options;
  };
  add_merged(batch, "f32", family({}, "simt"));
  add_merged(batch, "f16", family(half, "mma"));
  add_merged(batch, "f16", family(half, "wgmma_gather"));
  add_merged(batch, "f32", {});
  add_merged(batch, "f64", {.tolerance = 1e-14});
  add_merged(batch, "i8", {});
  EXPECT_EQ(batch.unit(0).find("void load("), std::string::npos) << "an operand is computed element by element";
  batch.run();
  batch.compile();
}

}  // namespace
}  // namespace heddle
