// Whole models for an AMD GPU: products by MFMA and by threads, convolutions, pools, attention as separate kernels.
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
    for (const char* architecture : {"gfx90a", "gfx942"}) {
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
  check("f64", product("f64", 33, 20, 40));
  check("few rows", product("f16", 3, 200, 512));
}

TEST_F(HipModelTest, Convolutions) {
  check("conv",
        "graph f(%x: f16[2,9,11,16], %w: f16[24,16,3,3]) {\n"
        "  %0 = conv(%x, %w) {layout = \"nhwc\", strides = [2,1], low = [1,1], high = [1,1], lhs_dilations = [1,1], "
        "dilations = [1,1], groups = 1}\n  return \"y\" = %0\n}\n");
}

TEST_F(HipModelTest, SoftmaxOfScores) {
  check("attention",
        "graph f(%q: f16[2,40,64], %k: f16[2,72,64], %v: f16[2,72,64]) {\n"
        "  %0 = dot(%q, %k) {lhs_batch = [0], rhs_batch = [0], lhs_contract = [2], rhs_contract = [2]}\n"
        "  %1 = reduce(%0) {kind = \"max\", dims = [2]}\n"
        "  %2 = broadcast(%1) {shape = [2, 40, 72], dims = [0, 1]}\n  %3 = sub(%0, %2)\n  %4 = exp(%3)\n"
        "  %5 = reduce(%4) {kind = \"sum\", dims = [2]}\n"
        "  %6 = broadcast(%5) {shape = [2, 40, 72], dims = [0, 1]}\n  %7 = div(%4, %6)\n"
        "  %8 = dot(%7, %v) {lhs_batch = [0], rhs_batch = [0], lhs_contract = [2], rhs_contract = [1]}\n"
        "  return \"y\" = %8\n}\n");
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
