// Matrix products on the emulated GPU: every family, type and layout, epilogues and prologues.
#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "codegen/text/kernel_name.h"
#include "schedule/config/config_source.h"
#include "schedule/product/cuda/contraction.h"
#include "testing.h"
#include "tests/codegen/harness.h"
#include "tests/contraction/testing.h"

namespace heddle {
namespace {

using testing::CudaBatch;
using testing::matmul_text;

// Epilogues as the fusion makes them.
void add_epilogues(CudaBatch& batch, const std::string& type, double tolerance, const CudaBatch::Options& base) {
  CudaBatch::Options options = base;
  options.tolerance = tolerance;
  batch.add(type + " bias, residual, two results",
            fmt::format(R"(graph g(%x: {0}[29,64], %r: {0}[29,48]) {{
      %w = constant {{value = {0}[64,48]{{1}}}}
      %b = constant {{value = {0}[48]{{1}}}}
      %c = constant {{value = {0}[29]{{1}}}}
      %z = constant {{value = {0}[]{{0}}}}
      %0 = dot(%x, %w) {{lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]}} : {0}[29,48]
      %1 = broadcast(%b) {{shape = [29,48], dims = [1]}} : {0}[29,48]
      %2 = add(%0, %1) : {0}[29,48]
      %3 = broadcast(%z) {{shape = [29,48], dims = []}} : {0}[29,48]
      %4 = max(%2, %3) : {0}[29,48]
      %5 = broadcast(%c) {{shape = [29,48], dims = [0]}} : {0}[29,48]
      %6 = mul(%4, %5) : {0}[29,48]
      %7 = add(%6, %r) : {0}[29,48]
      return "y" = %7, "z" = %2
    }})",
                        type),
            options);
  batch.add(type + " to another type and a mask",
            fmt::format(R"(graph g(%x: {0}[37,40]) {{
      %w = constant {{value = {0}[40,21]{{1}}}}
      %z = constant {{value = {0}[]{{0}}}}
      %0 = dot(%x, %w) {{lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]}} : {0}[37,21]
      %1 = broadcast(%z) {{shape = [37,21], dims = []}} : {0}[37,21]
      %2 = gt(%0, %1) : bool[37,21]
      %3 = tanh(%0) : {0}[37,21]
      %4 = cast(%3) {{to = f64}} : f64[37,21]
      return "y" = %4, "m" = %2
    }})",
                        type),
            options);
  batch.add(type + " heads",
            fmt::format(R"(graph g(%x: {0}[2,11,24]) {{
      %w = constant {{value = {0}[24,96]{{1}}}}
      %b = constant {{value = {0}[96]{{1}}}}
      %0 = dot(%x, %w) {{lhs_batch = [], rhs_batch = [], lhs_contract = [2], rhs_contract = [0]}} : {0}[2,11,96]
      %1 = broadcast(%b) {{shape = [2,11,96], dims = [2]}} : {0}[2,11,96]
      %2 = add(%0, %1) : {0}[2,11,96]
      %3 = reshape(%2) {{shape = [2,11,3,32]}} : {0}[2,11,3,32]
      %4 = transpose(%3) {{perm = [0,2,1,3]}} : {0}[2,3,11,32]
      %5 = transpose(%3) {{perm = [0,2,3,1]}} : {0}[2,3,32,11]
      return "y" = %4, "z" = %5
    }})",
                        type),
            options);
  batch.add(type + " heads of 5 columns",
            fmt::format(R"(graph g(%x: {0}[7,24]) {{
      %w = constant {{value = {0}[24,35]{{1}}}}
      %0 = dot(%x, %w) {{lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]}} : {0}[7,35]
      %1 = reshape(%0) {{shape = [7,7,5]}} : {0}[7,7,5]
      %2 = transpose(%1) {{perm = [1,0,2]}} : {0}[7,7,5]
      return "y" = %2
    }})",
                        type),
            options);
}

// Of an epilogue the exact functions take longer than the product.
TEST(CudaDot, ResultsOf16BitsHaveShortEpilogues) {
  for (const char* type : {"f16", "bf16", "f32"}) {
    CudaBatch batch;
    batch.add(type, fmt::format(R"(graph g(%x: {0}[64,64]) {{
      %w = constant {{value = {0}[64,64]{{1}}}}
      %0 = dot(%x, %w) {{lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]}} : {0}[64,64]
      %1 = tanh(%0) : {0}[64,64]
      return "y" = %1
    }})",
                                type));
    EXPECT_EQ(batch.unit(0).find("tile::fast::tanh") != std::string::npos, std::string_view(type) != "f32") << type;
  }
}

// What leaves sums of parts of k does not know the epilogue, what adds them not the product.
TEST(CudaDot, ProductsShareKernels) {
  const auto text = [](int64_t m, int64_t k, std::string_view op) {
    return fmt::format(R"(graph g(%x: f32[{0},{1}]) {{
      %w = constant {{value = f32[{1},40]{{1}}}}
      %b = constant {{value = f32[40]{{1}}}}
      %0 = dot(%x, %w) {{lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]}} : f32[{0},40]
      %1 = broadcast(%b) {{shape = [{0},40], dims = [1]}} : f32[{0},40]
      %2 = {2}(%0, %1) : f32[{0},40]
      return "y" = %2
    }})",
                       m, k, op);
  };
  const CudaBatch::Options split{.family = "mma", .split = true};
  CudaBatch batch;
  batch.add("sum", text(150, 900, "add"), split);
  batch.add("product", text(150, 900, "mul"), split);
  batch.add("another length", text(149, 900, "mul"), split);
  const std::string unit = batch.unit(90);
  size_t kernels = 0;
  for (size_t at = 0; (at = unit.find("__global__", at)) != std::string::npos; ++at) ++kernels;
  EXPECT_EQ(kernels, 3u) << unit;
  batch.run();
}

TEST(CudaDot, KernelsAreNamedForWhatTheyDo) {
  const auto name = [](std::string text) { return codegen::name_kernel(text, "k"); };
  EXPECT_EQ(name("void KERNEL_NAME() {\n  f();  // of Conv\n}\n"),
            name("void KERNEL_NAME() {\n  f();  // of Add\n}\n"));
  EXPECT_NE(name("void KERNEL_NAME() {\n  f();\n}\n"), name("void KERNEL_NAME() {\n  g();\n}\n"));
}

TEST(CudaDot, Threads) {
  CudaBatch batch;
  const CudaBatch::Options simt{.family = "simt"};
  add_epilogues(batch, "f32", 1e-5, simt);
  batch.add("transposed", matmul_text("f32", 29, 45, 67, "", false, true), simt);
  batch.add("no constants", matmul_text("f32", 65, 33, 17, "", true, true, false), simt);
  batch.add("one row", matmul_text("f32", 1, 70, 33), simt);
  batch.add("one column", matmul_text("f32", 70, 1, 33), simt);
  batch.add("one of all", matmul_text("f32", 1, 1, 1), simt);
  batch.add("no k", matmul_text("f32", 5, 4, 0, "", true, false, false), simt);
  batch.add("long k", matmul_text("f32", 9, 10, 700), {.family = "simt", .split = true});
  batch.add("f64", matmul_text("f64", 29, 45, 67), {.tolerance = 1e-14});
  batch.add("f64 along other sides", matmul_text("f64", 9, 45, 67, "", false, true), {.tolerance = 1e-14});
  batch.add("i64", matmul_text("i64", 9, 20, 33));
  batch.add("i32", matmul_text("i32", 9, 20, 33));
  batch.run();
  batch.compile(CudaBatch::Compiled::kKinds);
}

TEST(CudaDot, Few) {
  CudaBatch batch;
  const CudaBatch::Options few{.family = "skinny"};
  batch.add("a vector", matmul_text("f32", 1, 70, 33), few);
  batch.add("rows", matmul_text("f32", 5, 70, 64, "", true, true), few);
  batch.add("columns", matmul_text("f32", 70, 3, 40, "", true, true, false), few);
  batch.add("half", matmul_text("f16", 3, 72, 64, "", true, true, false), {.tolerance = 2e-3, .family = "skinny"});
  batch.add("half, along rows", matmul_text("f16", 2, 72, 64), {.tolerance = 2e-3, .family = "skinny"});
  batch.add("bytes along rows", matmul_text("i8", 2, 528, 24, "i32"), few);
  batch.run();
  batch.compile();
}

TEST(CudaDot, TensorCoresOfEveryDevice) {
  CudaBatch batch;
  for (const char* type : {"f16", "bf16"}) {
    add_epilogues(batch, type, type[0] == 'b' ? 2e-2 : 3e-3, {.sm = 80, .family = "mma"});
  }
  const CudaBatch::Options half{.tolerance = 2e-3, .sm = 80, .family = "mma"};
  batch.add("both along rows", matmul_text("f16", 70, 40, 33, "", false, false, false), half);
  batch.add("both along k", matmul_text("f16", 70, 40, 48, "", true, true, false), half);
  batch.add("odd weights are padded", matmul_text("f16", 70, 41, 35), half);
  batch.add("float results", matmul_text("f16", 33, 40, 64, "f32"), {.tolerance = 1e-5, .sm = 80, .family = "mma"});
  batch.add("split", matmul_text("f16", 9, 40, 900), {.tolerance = 2e-3, .sm = 80, .family = "mma", .split = true});
  for (const char* types : {"i8 i8", "u8 i8", "i8 u8", "u8 u8"}) {
    batch.add(types,
              fmt::format(R"(graph g(%x: {0}[19,40]) {{
        %w = constant {{value = {1}[40,24]{{1}}}}
        %s = constant {{value = f32[]{{0.01}}}}
        %0 = dot(%x, %w) {{lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]}} : i32[19,24]
        %1 = cast(%0) {{to = f32}} : f32[19,24]
        %2 = broadcast(%s) {{shape = [19,24], dims = []}} : f32[19,24]
        %3 = mul(%1, %2) : f32[19,24]
        return "y" = %3, "z" = %0
      }})",
                          std::string(types).substr(0, 2), std::string(types).substr(3)),
              {.sm = 80, .family = "mma"});
  }
  batch.add("tf32", R"(graph g(%x: f32[29,67]) {
      %w = constant {value = f32[67,45]{1}}
      %0 = dot(%x, %w) {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0], tf32 = 1} : f32[29,45]
      return "y" = %0
    })",
            {.tolerance = 2e-3, .sm = 80, .family = "mma"});
  batch.add("batches with several strides", R"(graph g(%q: f16[2,11,96], %k: f16[2,13,96]) {
      %0 = reshape(%q) {shape = [2,11,3,32]} : f16[2,11,3,32]
      %1 = transpose(%0) {perm = [0,2,1,3]} : f16[2,3,11,32]
      %2 = reshape(%k) {shape = [2,13,3,32]} : f16[2,13,3,32]
      %3 = transpose(%2) {perm = [0,2,3,1]} : f16[2,3,32,13]
      %4 = dot(%1, %3) {lhs_batch = [0,1], rhs_batch = [0,1], lhs_contract = [3], rhs_contract = [2]} : f16[2,3,11,13]
      return "y" = %4
    })",
            half);
  batch.run();
  batch.compile(CudaBatch::Compiled::kKinds);
}

TEST(CudaDot, Wgmma) {
  CudaBatch batch;
  for (const char* type : {"f16", "bf16"}) {
    add_epilogues(batch, type, type[0] == 'b' ? 2e-2 : 3e-3, {.sm = 90, .family = "wgmma"});
  }
  const CudaBatch::Options half{.tolerance = 2e-3, .sm = 90, .family = "wgmma"};
  batch.add("both along rows", matmul_text("f16", 72, 40, 33, "", false, false, false), half);
  batch.add("both along k", matmul_text("f16", 70, 40, 48, "", true, true, false), half);
  batch.add("odd weights are padded", matmul_text("f16", 70, 41, 40), half);
  batch.add("split", matmul_text("f16", 9, 40, 1200), {.tolerance = 2e-3, .sm = 90, .family = "wgmma", .split = true});
  batch.add("int8", matmul_text("i8", 19, 24, 48, "i32"), {.sm = 90, .family = "wgmma"});
  batch.add("int8, dequantised", R"(graph g(%x: i8[19,48]) {
      %w = constant {value = i8[48,24]{1}}
      %s = constant {value = f32[]{0.01}}
      %0 = dot(%x, %w) {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0]} : i32[19,24]
      %1 = cast(%0) {to = f32} : f32[19,24]
      %2 = broadcast(%s) {shape = [19,24], dims = []} : f32[19,24]
      %3 = mul(%1, %2) : f32[19,24]
      return "y" = %3
    })",
            {.sm = 90, .family = "wgmma"});
  batch.add("tf32", R"(graph g(%x: f32[29,64]) {
      %w = constant {value = f32[64,45]{1}}
      %0 = dot(%x, %w) {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0], tf32 = 1} : f32[29,45]
      return "y" = %0
    })",
            {.tolerance = 2e-3, .sm = 90, .family = "wgmma"});
  batch.add("batches", R"(graph g(%q: f16[3,16,32], %k: f16[3,24,32]) {
      %0 = dot(%q, %k) {lhs_batch = [0], rhs_batch = [0], lhs_contract = [2], rhs_contract = [2]} : f16[3,16,24]
      return "y" = %0
    })",
            half);
  batch.run();
  batch.compile(CudaBatch::Compiled::kKinds);
}

// Clusters that share k, by TMA and through views.
TEST(CudaDot, SmallSides) {
  CudaBatch batch;
  std::mt19937 random(::testing::UnitTest::GetInstance()->random_seed() + 2);
  for (const char* algorithm : {"cluster_splitk", "gather_splitk"}) {
    const std::string name = algorithm;
    const CudaBatch::Options half{.tolerance = 3e-3, .family = algorithm};
    add_epilogues(batch, "f16", 3e-3, half);
    batch.add(name + " both along rows", matmul_text("f16", 72, 136, 33, "", false, false, false), half);
    batch.add(name + " both along k", matmul_text("f16", 70, 40, 48, "", true, true, false), half);
    batch.add(name + " split", matmul_text("bf16", 9, 40, 2400, "", true, true, false),
              {.tolerance = 2e-2, .family = algorithm, .split = true});
    batch.add(name + " int8", matmul_text("i8", 19, 24, 304, "i32", true, true, false), {.family = algorithm});
    batch.add(name + " batches", R"(graph g(%q: f16[3,16,32], %k: f16[3,24,32]) {
      %0 = dot(%q, %k) {lhs_batch = [0], rhs_batch = [0], lhs_contract = [2], rhs_contract = [2]} : f16[3,16,24]
      return "y" = %0
    })",
              half);
    for (int i = 0; i < 5; ++i) {
      const auto extent = [&](unsigned most) { return static_cast<int64_t>(random() % most / 8 * 8 + 8); };
      const int64_t m = extent(150), n = extent(150), k = extent(1400);
      const unsigned skip = random() % 199;
      // Views along rows have tiles of 64 on that side, which no narrow one is given.
      const bool a_along_k = random() % 4 != 0, b_along_k = random() % 4 != 0 || (!a_along_k && std::min(m, n) < 64);
      batch.add(fmt::format("{} {}x{}x{} skip {}", name, m, n, k, skip),
                matmul_text("f16", m, n, k, "", a_along_k, b_along_k, false),
                {.tolerance = 5e-3, .family = algorithm, .skip = skip});
    }
  }
  batch.add("tf32", R"(graph g(%x: f32[29,64]) {
      %w = constant {value = f32[64,45]{1}}
      %0 = dot(%x, %w) {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [0], tf32 = 1} : f32[29,45]
      return "y" = %0
    })",
            {.tolerance = 2e-3, .family = "cluster_splitk"});
  batch.run();
  batch.compile(CudaBatch::Compiled::kKinds);
}

// Rows of the long operand begin at any address, and TMA reads them where they lie.
TEST(CudaDot, Classes) {
  CudaBatch batch;
  std::mt19937 random(::testing::UnitTest::GetInstance()->random_seed() + 9);
  const CudaBatch::Options half{.tolerance = 3e-3, .family = "misaligned"};
  batch.add("rows are long", matmul_text("f16", 601, 21, 331, "", true, true, false), half);
  batch.add("columns are long", matmul_text("f16", 45, 777, 137, "", true, true, false), half);
  batch.add("four classes", matmul_text("bf16", 19, 300, 70, "", true, true, false),
            {.tolerance = 2e-2, .family = "misaligned"});
  batch.add("the other one is aligned", matmul_text("f16", 16, 515, 65, "", true, true, false), half);
  batch.add("bias, residual, two results", R"(graph g(%x: f16[29,67], %w: f16[261,67], %r: f16[29,261]) {
      %c = constant {value = f16[261]{1}}
      %0 = dot(%x, %w) {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [1]} : f16[29,261]
      %1 = broadcast(%c) {shape = [29,261], dims = [1]} : f16[29,261]
      %2 = add(%0, %1) : f16[29,261]
      %5 = add(%2, %r) : f16[29,261]
      return "y" = %5, "z" = %2
    })",
            half);
  batch.add("tf32", R"(graph g(%x: f32[290,67], %w: f32[45,67]) {
      %0 = dot(%x, %w) {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [1], tf32 = 1} : f32[290,45]
      return "y" = %0
    })",
            {.tolerance = 2e-3, .family = "misaligned"});
  batch.add("int8", matmul_text("i8", 290, 40, 126, "i32", true, true, false), {.family = "misaligned"});
  for (int i = 0; i < 8; ++i) {
    const auto extent = [&](unsigned most) { return static_cast<int64_t>(random() % most + 1); };
    const int64_t m = 256 + extent(700), n = extent(128), k = extent(500) * 2 + 1;
    const bool swapped = i % 2 == 0;
    batch.add(fmt::format("{}x{}x{} {}", m, n, k, i),
              matmul_text("f16", swapped ? n : m, swapped ? m : n, k, "", true, true, false),
              {.tolerance = 5e-3, .family = "misaligned", .skip = static_cast<unsigned>(random() % 99)});
  }
  batch.run();
  batch.compile(CudaBatch::Compiled::kKinds);
}

// Products along k of 29 and 45 lines: with a bias of rows, a residual and two results, and of tf32.
std::string with_epilogue_text(int64_t k) {
  return fmt::format(R"(graph g(%x: f16[29,{0}], %w: f16[45,{0}], %r: f16[29,45]) {{
      %c = constant {{value = f16[29]{{1}}}}
      %z = constant {{value = f16[]{{0}}}}
      %0 = dot(%x, %w) {{lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [1]}} : f16[29,45]
      %1 = broadcast(%c) {{shape = [29,45], dims = [0]}} : f16[29,45]
      %2 = add(%0, %1) : f16[29,45]
      %3 = broadcast(%z) {{shape = [29,45], dims = []}} : f16[29,45]
      %4 = max(%2, %3) : f16[29,45]
      %5 = add(%4, %r) : f16[29,45]
      return "y" = %5, "z" = %2
    }})",
                     k);
}
std::string tf32_text(int64_t k) {
  return fmt::format(R"(graph g(%x: f32[29,{0}], %w: f32[45,{0}]) {{
      %0 = dot(%x, %w) {{lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [1], tf32 = 1}} : f32[29,45]
      return "y" = %0
    }})",
                     k);
}
std::string batches_text(int64_t k) {
  return fmt::format(R"(graph g(%q: f16[3,16,{0}], %k: f16[3,25,{0}]) {{
      %0 = dot(%q, %k) {{lhs_batch = [0], rhs_batch = [0], lhs_contract = [2], rhs_contract = [2]}} : f16[3,16,25]
      return "y" = %0
    }})",
                     k);
}

// What a lane multiplies it loads itself.
TEST(CudaDot, Direct) {
  CudaBatch batch;
  std::mt19937 random(::testing::UnitTest::GetInstance()->random_seed() + 5);
  const CudaBatch::Options half{.tolerance = 3e-3, .family = "register_direct"};
  batch.add("bias of rows, residual, two results", with_epilogue_text(72), half);
  batch.add("batches", batches_text(40), half);
  batch.add("tf32", tf32_text(68), {.tolerance = 2e-3, .family = "register_direct"});
  batch.add("one element", matmul_text("f16", 1, 1, 8, "", true, true, false), half);
  for (int i = 0; i < 18; ++i) {
    const auto extent = [&](unsigned most) { return static_cast<int64_t>(random() % most + 1); };
    const int64_t m = extent(120), n = extent(100), k = extent(i % 3 == 0 ? 80 : 12) * 16;
    const unsigned skip = random() % 499;
    const bool integers = i % 3 == 1;
    batch.add(fmt::format("{}x{}x{} skip {}", m, n, k, skip),
              matmul_text(integers     ? "i8"
                          : i % 3 == 0 ? "f16"
                                       : "bf16",
                          m, n, k, integers ? "i32" : "", true, true, false),
              {.tolerance = integers ? 0 : 2e-2, .family = "register_direct", .skip = skip});
  }
  batch.run();
  batch.compile(CudaBatch::Compiled::kKinds);
}

// Lines along k that begin anywhere, read as they lie.
TEST(CudaDot, Lines) {
  CudaBatch batch;
  std::mt19937 random(::testing::UnitTest::GetInstance()->random_seed() + 3);
  const CudaBatch::Options half{.tolerance = 3e-3, .family = "unaligned"};
  batch.add("bias of rows, residual, two results", with_epilogue_text(67), half);
  batch.add("split", matmul_text("bf16", 9, 45, 2401, "", true, true, false),
            {.tolerance = 2e-2, .family = "unaligned", .split = true});
  batch.add("int8", matmul_text("i8", 19, 27, 303, "i32", true, true, false), {.family = "unaligned"});
  batch.add("bytes of mixed alignment", matmul_text("i8", 40, 9, 130, "i32", true, true, false),
            {.family = "unaligned"});
  batch.add("batches", batches_text(33), half);
  batch.add("tf32", tf32_text(67), {.tolerance = 2e-3, .family = "unaligned"});
  batch.add("one element", matmul_text("f16", 1, 1, 1, "", true, true, false), half);
  for (int i = 0; i < 12; ++i) {
    const auto extent = [&](unsigned most) { return static_cast<int64_t>(random() % most + 1); };
    const int64_t m = extent(200), n = extent(100), k = i % 3 == 0 ? extent(200) / 8 * 8 + 8 : extent(1400);
    const unsigned skip = random() % 499;
    batch.add(fmt::format("{}x{}x{} skip {}", m, n, k, skip),
              matmul_text(i % 2 == 0 ? "f16" : "i8", m, n, k, i % 2 == 0 ? "" : "i32", true, true, false),
              {.tolerance = i % 2 == 0 ? 5e-3 : 0, .family = "unaligned", .skip = skip});
  }
  batch.run();
  batch.compile(CudaBatch::Compiled::kKinds);
}

// Few results of a long k: every type, operands that lie either way, packed and with gaps.
TEST(CudaDot, LongK) {
  CudaBatch batch;
  std::mt19937 random(::testing::UnitTest::GetInstance()->random_seed() + 7);
  const CudaBatch::Options half{.tolerance = 3e-3, .family = "k_reduction", .split = true};
  batch.add("vectors", R"(graph g(%x: f16[9000], %y: f16[9000]) {
      %0 = dot(%x, %y) {lhs_batch = [], rhs_batch = [], lhs_contract = [0], rhs_contract = [0]} : f16[]
      return "y" = %0
    })",
            half);
  batch.add("more parts than a thread adds", matmul_text("f16", 3, 3, 40000, "", true, true, false),
            {.tolerance = 3e-3, .family = "k_reduction", .split = true, .skip = 3});
  batch.add("rows of three, packed", matmul_text("f16", 3, 3, 6003, "", false, false, false), half);
  batch.add("bias, residual, two results", R"(graph g(%x: f16[5,3000], %w: f16[6,3000], %r: f16[5,6]) {
      %c = constant {value = f16[5]{1}}
      %0 = dot(%x, %w) {lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [1]} : f16[5,6]
      %1 = broadcast(%c) {shape = [5,6], dims = [0]} : f16[5,6]
      %2 = add(%0, %1) : f16[5,6]
      %3 = add(%2, %r) : f16[5,6]
      return "y" = %3, "z" = %2
    })",
            half);
  batch.add("batches, packed", R"(graph g(%q: bf16[3,2048,5], %k: bf16[3,2048,8]) {
      %0 = dot(%q, %k) {lhs_batch = [0], rhs_batch = [0], lhs_contract = [1], rhs_contract = [1]} : bf16[3,5,8]
      return "y" = %0
    })",
            {.tolerance = 2e-2, .family = "k_reduction"});
  batch.add("rows with gaps", R"(graph g(%x: f32[1500,11], %y: f32[4,1500]) {
      %0 = slice(%x) {starts = [0,4], limits = [1500,9], strides = [1,1]} : f32[1500,5]
      %1 = dot(%0, %y) {lhs_batch = [], rhs_batch = [], lhs_contract = [0], rhs_contract = [1]} : f32[5,4]
      return "y" = %1
    })",
            {.family = "k_reduction", .split = true});
  batch.add("an image", R"(graph g(%x: f16[1,20,24,8]) {
      %w = constant {value = f16[5,8,20,24]{1}}
      %0 = conv(%x, %w) {strides = [1,1], low = [0,0], high = [0,0], dilations = [1,1], lhs_dilations = [1,1], groups = 1, layout = "nhwc"} : f16[1,1,1,5]
      return "y" = %0
    })",
            half);
  for (int i = 0; i < 24; ++i) {
    const auto extent = [&](unsigned most) { return static_cast<int64_t>(random() % most + 1); };
    const std::string type = std::vector<std::string>{"f16", "f32", "f64", "bf16", "i8", "i32", "f16", "i64"}[i % 8];
    const int64_t m = extent(12), n = extent(i % 2 == 0 ? 8 : 20), k = extent(4000) * (i % 3 == 0 ? 8 : 1) + 256;
    const bool a_along_k = random() % 2 != 0, b_along_k = random() % 2 != 0;
    const unsigned skip = random() % 499;
    const double tolerance = type == "f64" ? 1e-13 : type == "f32" ? 1e-5 : type[0] == 'i' ? 0 : 2e-2;
    batch.add(fmt::format("{} {}x{}x{} {} {} skip {}", type, m, n, k, a_along_k, b_along_k, skip),
              matmul_text(type, m, n, k, type == "i8" ? "i32" : "", a_along_k, b_along_k, false),
              {.tolerance = tolerance, .family = "k_reduction", .skip = skip});
  }
  batch.run();
  batch.compile(CudaBatch::Compiled::kKinds);
}

// Configurations that the model does not prefer are right, too.
TEST(CudaDot, ConfigurationsAtRandom) {
  std::mt19937 random(::testing::UnitTest::GetInstance()->random_seed() + 1);
  CudaBatch batch;
  const auto extent = [&](unsigned most) { return static_cast<int64_t>(random() % most + 1); };
  for (const auto& [type, algorithm] : {std::pair{"f16", "wgmma"},
                                        {"f16", "wgmma"},
                                        {"bf16", "mma"},
                                        {"f16", "mma"},
                                        {"f32", "simt"},
                                        {"f64", "simt"}}) {
    const bool wgmma = std::string(algorithm) == "wgmma";
    const int64_t m = extent(150), n = extent(150), k = extent(300);
    const double tolerance = std::string(type) == "f64" ? 1e-13 : std::string(type) == "f32" ? 1e-5 : 2e-2;
    const unsigned skip = random() % 97;
    batch.add(fmt::format("{} {} {}x{}x{} skip {}", type, algorithm, m, n, k, skip),
              matmul_text(type, wgmma ? (m + 7) / 8 * 8 : m, wgmma ? (n + 7) / 8 * 8 : n, wgmma ? (k + 7) / 8 * 8 : k,
                          "", random() % 2 != 0, random() % 2 != 0, false),
              {.tolerance = tolerance, .family = algorithm, .skip = skip});
  }
  batch.run();
}

TEST(CudaDot, EveryRefusalSaysWhy) {
  Target target = Target::cuda_h200(1);
  for (const int sm : {90, 80}) {
    target.cuda.sm = sm;
    for (const auto& text : {matmul_text("f32", 29, 45, 67), matmul_text("f16", 29, 48, 64),
                             matmul_text("f16", 1, 45, 67, "", true, true, false)}) {
      const ir::Graph graph = testing::parse_with_random_weights(text, 1);
      const auto scheduled = schedule::schedule_contraction(
          graph, testing::whole_graph(graph, ir::GroupKind::kContraction), target, nullptr);
      const schedule::KernelDesc& desc = scheduled.kernels.at(0).desc;
      const auto& body = *std::get<std::shared_ptr<const schedule::ContractionDesc>>(desc.body);
      const auto candidates = schedule::cuda_candidates(
          {std::get<schedule::Product>(body.problem), body.epilogue, desc.operands}, target.cuda);
      EXPECT_TRUE(candidates.at(0).rejected.empty());
      EXPECT_EQ(name_of(candidates[0].config), name_of(scheduled.kernels[0].config));
      bool refused = false;
      for (const auto& candidate : candidates) {
        EXPECT_EQ(candidate.rejected.empty(), candidate.config.predicted_us > 0);
        EXPECT_FALSE(refused && candidate.rejected.empty()) << "those that cannot run come last";
        refused = refused || !candidate.rejected.empty();
        EXPECT_TRUE(candidate.rejected.empty() || candidate.rejected.size() > 8) << candidate.rejected;
        if (sm == 80 && family_of(candidate.config).starts_with("wgmma")) {
          EXPECT_EQ(candidate.rejected, "the device has none");
        }
      }
      EXPECT_TRUE(refused);
      EXPECT_GT(scheduled.kernels[0].floor_seconds, 0);
      EXPECT_NE(scheduled.notes.at(0).find("predicted"), std::string::npos);
    }
  }
}

// Heads of an attention lie within the rows that a projection made.
TEST(CudaDot, HeadsWithinRowsByTheCopyEngine) {
  CudaBatch batch;
  const auto scores = [](int64_t columns) {
    return fmt::format(R"(graph g(%x: f16[2,21,{0}], %y: f16[2,37,{0}]) {{
      %0 = slice(%x) {{starts = [0,0,64], limits = [2,21,256], strides = [1,1,1]}} : f16[2,21,192]
      %1 = reshape(%0) {{shape = [2,21,3,64]}} : f16[2,21,3,64]
      %2 = slice(%y) {{starts = [0,0,0], limits = [2,37,192], strides = [1,1,1]}} : f16[2,37,192]
      %3 = reshape(%2) {{shape = [2,37,3,64]}} : f16[2,37,3,64]
      %4 = dot(%1, %3) {{lhs_batch = [0,2], rhs_batch = [0,2], lhs_contract = [3], rhs_contract = [3]}} : f16[2,3,21,37]
      return "y" = %4
    }})",
                       columns);
  };
  const auto values = [](int64_t length) {
    return fmt::format(R"(graph g(%p: f16[2,3,21,{0}], %x: f16[2,{0},576]) {{
      %0 = slice(%x) {{starts = [0,0,384], limits = [2,{0},576], strides = [1,1,1]}} : f16[2,{0},192]
      %1 = reshape(%0) {{shape = [2,{0},3,64]}} : f16[2,{0},3,64]
      %2 = dot(%p, %1) {{lhs_batch = [0,1], rhs_batch = [0,2], lhs_contract = [3], rhs_contract = [1]}} : f16[2,3,21,64]
      %3 = transpose(%2) {{perm = [0,2,1,3]}} : f16[2,21,3,64]
      return "y" = %3
    }})",
                       length);
  };
  for (unsigned skip = 0; skip < 40; skip += 9) {
    const CudaBatch::Options options{.tolerance = 3e-3, .family = "wgmma", .skip = skip};
    batch.add(fmt::format("scores {}", skip), scores(576), options);
    batch.add(fmt::format("values {}", skip), values(40), options);
  }
  batch.add("rows of no whole 16 bytes", values(37), {.tolerance = 3e-3, .family = "wgmma"});
  batch.run();
  batch.compile();
}

}  // namespace
}  // namespace heddle
