// Whole models for an AMD GPU: products by MFMA and by threads, convolutions, pools, attention.
// Each runs on the emulator against the float64 reference, and its kernels compile for hardware without spilled
// registers.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/file/file.h"
#include "driver/compile/compile.h"
#include "driver/options/options.h"
#include "driver/verify/verify.h"
#include "heddle/error.h"
#include "jit/hip/code_object.h"
#include "jit/hip/metadata.h"
#include "tests/instances.h"

namespace heddle {
namespace {

bool has_hip_compiler() {
  try {
    jit::find_hip_compiler();
    return true;
  } catch (const Error&) {
    return false;
  }
}

// Those that kernels are compiled for: two with waves of 64, or the one that is emulated.
std::vector<std::string> architectures() {
  const char* emulated = std::getenv("HEDDLE_EMULATED_GFX");
  return emulated == nullptr ? std::vector<std::string>{"gfx90a", "gfx942"} : std::vector<std::string>{emulated};
}

class HipModelTest : public testing::Test {
 protected:
  void SetUp() override {
    ::setenv("HEDDLE_HIP_DRIVER", HEDDLE_EMULATOR, 0);
    ::setenv("HEDDLE_CACHE_DIR", (dir_.path() + "/cache").c_str(), 1);
  }
  void TearDown() override { ::unsetenv("HEDDLE_CACHE_DIR"); }

  std::string write(const std::string& name, const std::string& graph) const {
    const std::string path = fmt::format("{}/{}.hir", dir_.path(), name);
    write_file(path, graph);
    return path;
  }
  // Returns the kernels for hardware of this architecture.
  static std::vector<jit::HipKernel> kernels_for(const std::string& path, const std::string& architecture) {
    CompileOptions options;
    options.target = "hip-" + architecture;
    const auto compiled = driver::compile_model(path, options);
    std::vector<jit::HipKernel> kernels;
    for (const runtime::Cubin& cubin : compiled.plan->cubins) {
      for (jit::HipKernel& kernel : jit::kernels_of(cubin.bytes)) kernels.push_back(std::move(kernel));
    }
    return kernels;
  }
  void check(const std::string& name, const std::string& graph) const {
    SCOPED_TRACE(name);
    const std::string path = write(name, graph);
    CompileOptions options;
    options.target = "hip:0";
    const driver::VerifyReport report = driver::verify(path, options, {}, 1);
    for (const driver::OutputCheck& output : report.outputs) {
      EXPECT_TRUE(output.comparison.ok) << output.name << ": " << output.comparison.error;
    }
    if (!has_hip_compiler()) return;
    for (const std::string& architecture : architectures()) {
      const std::vector<jit::HipKernel> kernels = kernels_for(path, architecture);
      EXPECT_FALSE(kernels.empty());
      for (const jit::HipKernel& kernel : kernels) {
        EXPECT_EQ(kernel.spilled, 0) << architecture << " " << kernel.name;
        EXPECT_EQ(kernel.private_bytes, 0) << architecture << " " << kernel.name;
      }
    }
  }

  TempDir dir_;
};

std::string product(const std::string& type, int64_t m, int64_t n, int64_t k, bool along_k = false) {
  const std::string w = along_k ? fmt::format("{},{}", n, k) : fmt::format("{},{}", k, n);
  return fmt::format(
      "graph f(%x: {0}[{1},{2}], %w: {0}[{3}], %b: {0}[{4}]) {{\n"
      "  %0 = dot(%x, %w) {{lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [{5}]}}\n"
      "  %1 = broadcast(%b) {{shape = [{1}, {4}], dims = [1]}}\n  %2 = add(%0, %1)\n  %3 = tanh(%2)\n"
      "  return \"y\" = %3\n}}\n",
      type, m, k, w, n, along_k ? 1 : 0);
}

TEST_F(HipModelTest, Products) {
  const ::testing::ScopedTrace seed = test::trace_seed();
  const auto check_some = [&](const std::string& name, const std::string& graph) {
    if (name == "f16 odd" || test::draws_instance(name)) check(name, graph);
  };
  for (const char* type : {"f16", "bf16", "f32"}) {
    check_some(fmt::format("{} odd", type), product(type, 70, 50, 130));
    check_some(fmt::format("{} along k", type), product(type, 129, 96, 256, true));
    check_some(fmt::format("{} long", type), product(type, 17, 33, 2000));
  }
  check("few rows", product("f16", 3, 200, 512));
}

TEST_F(HipModelTest, ProductsOfDoubles) {
  check("f64", product("f64", 33, 20, 40));
  check("f64 along k", product("f64", 130, 70, 72, true));
}

TEST_F(HipModelTest, Convolutions) {
  check("conv",
        "graph f(%x: f16[2,9,11,16], %w: f16[24,16,3,3]) {\n"
        "  %0 = conv(%x, %w) {layout = \"nhwc\", strides = [2,1], low = [1,1], high = [1,1], lhs_dilations = [1,1], "
        "dilations = [1,1], groups = 1}\n  return \"y\" = %0\n}\n");
}

TEST_F(HipModelTest, ProductsOfBytes) {
  for (const bool along_k : {false, true}) {
    check(
        fmt::format("bytes {}", along_k),
        fmt::format("graph f(%x: i8[70,200], %w: i8[{}]) {{\n"
                    "  %0 = dot(%x, %w) {{lhs_batch = [], rhs_batch = [], lhs_contract = [1], rhs_contract = [{}]}} : "
                    "i32[70,50]\n  return \"y\" = %0\n}}\n",
                    along_k ? "50,200" : "200,50", along_k ? 1 : 0));
  }
}

// Softmax of scores that a mask of one row for all batches is added to, between two products.
std::string attention(const std::string& type, int64_t batch, int64_t rows, int64_t keys, int64_t depth) {
  return fmt::format(
      "graph f(%q: {0}[{4},{1},{3}], %k: {0}[{4},{2},{3}], %v: {0}[{4},{2},{3}], %m: {0}[{1},{2}]) {{\n"
      "  %0 = dot(%q, %k) {{lhs_batch = [0], rhs_batch = [0], lhs_contract = [2], rhs_contract = [2]}}\n"
      "  %1 = broadcast(%m) {{shape = [{4},{1},{2}], dims = [1, 2]}}\n  %2 = add(%0, %1)\n"
      "  %3 = reduce(%2) {{kind = \"max\", dims = [2]}}\n"
      "  %4 = broadcast(%3) {{shape = [{4}, {1}, {2}], dims = [0, 1]}}\n  %5 = sub(%2, %4)\n  %6 = exp(%5)\n"
      "  %7 = reduce(%6) {{kind = \"sum\", dims = [2]}}\n"
      "  %8 = broadcast(%7) {{shape = [{4}, {1}, {2}], dims = [0, 1]}}\n  %9 = div(%6, %8)\n"
      "  %10 = dot(%9, %v) {{lhs_batch = [0], rhs_batch = [0], lhs_contract = [2], rhs_contract = [1]}}\n"
      "  return \"y\" = %10\n}}\n",
      type, rows, keys, depth, batch);
}

TEST_F(HipModelTest, Attention) {
  const auto is_one_kernel = [&](const std::string& name, const std::string& graph) {
    check(name, graph);
    CompileOptions options;
    options.target = "hip:0";
    EXPECT_EQ(driver::compile_model(write(name, graph), options).plan->steps.size(), 1u) << name;
  };
  is_one_kernel("f16", attention("f16", 2, 140, 172, 64));
  is_one_kernel("bf16", attention("bf16", 2, 97, 205, 80));
  is_one_kernel("f32", attention("f32", 8, 140, 170, 16));
}

TEST_F(HipModelTest, UpdatesOfOneRow) {
  check("scatter",
        "graph f(%x: f32[1,13,8], %u: f32[4,13,8]) {\n  %i = constant {value = i64[4,1]{0}}\n"
        "  %0 = scatter_nd(%x, %i, %u) {reduction = \"min\"}\n  return \"y\" = %0\n}\n");
}

TEST_F(HipModelTest, ATargetThatIsMissingIsNamed) {
  try {
    driver::device_of("hip-gfx000");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("hip-gfx942"));
  }
  EXPECT_EQ(driver::device_of("hip-gfx90a"), 0);
  EXPECT_EQ(driver::device_of("hip:3"), 3);
}

}  // namespace
}  // namespace heddle
