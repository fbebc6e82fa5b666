// Kernels compile for sm_90a without a GPU, where NVRTC is installed.
#include "jit/cuda/nvrtc.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "base/file/file.h"
#include "base/thread/thread_pool.h"
#include "driver/compile/compile.h"
#include "driver/target/backend.h"
#include "driver/tune/calibrate.h"
#include "heddle/error.h"
#include "jit/headers.h"
#include "ops/gemm_kernel.h"
#include "ops/prepared_kernel.h"
#include "schedule/config/config_source.h"
#include "tests/instances.h"
#include "tests/machine_code.h"
#include "zoo/zoo.h"

namespace heddle::jit {
namespace {

class NvrtcTest : public testing::Test {
 protected:
  void SetUp() override {
    try {
      find_nvrtc();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kNoCompiler);
      GTEST_SKIP() << error.what();
    }
    ::setenv("HEDDLE_CACHE_DIR", cache_.path().c_str(), 1);
  }
  void TearDown() override { ::unsetenv("HEDDLE_CACHE_DIR"); }

  TempDir cache_;
};

ops::GemmProblem problem(int64_t m, int64_t n, DType in, DType out, const char* epilogue = "", bool transpose_a = false,
                         bool transpose_b = true) {
  ops::GemmProblem p;
  p.in = in;
  p.out = out;
  p.tf32 = in == DType::kF32;
  p.m = m;
  p.n = n;
  p.k = 4096;
  p.transpose_a = transpose_a;
  p.transpose_b = transpose_b;
  p.epilogue = epilogue;
  const DType type = out == DType::kI32 ? DType::kF32 : out;
  p.operands = {{.name = "bias", .dtype = type},
                {.name = "row_bias", .kind = ops::Operand::Kind::kRow, .dtype = type},
                {.name = "residual", .kind = ops::Operand::Kind::kMatrix, .dtype = type}};
  return p;
}

// compile_cubin() throws on spills, C7508 and C7510. Of each tile of the sm_90 family one instance, a part of them by
// default: clusters and splits vary from tile to tile.
void compile_tiles(const ops::GemmProblem& p, size_t most = 36, std::string_view family = "wgmma") {
  most = test::instances(most, test::kOneOfNvrtc);
  const ops::ResolvedGemm gemm = ops::resolve(p);
  std::set<std::string> seen;
  int turn = 0;
  const auto all = ops::all_candidates(gemm, CudaTarget{});
  for (auto c = all.rbegin(); c != all.rend(); ++c) {  // from the back: clusters and splits come first
    const schedule::Config& f = c->config;
    if (family_of(f) != family || !c->rejected.empty() || seen.size() == most) continue;
    if (++turn % 3 != 0 || !seen.insert(tile_name(f)).second) continue;
    const std::string unit = ops::make_kernel(gemm.desc, f, CudaTarget{}).unit;
    EXPECT_NO_THROW(EXPECT_EQ(test::find_wrong_loads(compile_cubin(unit, "sm_90a", false).bytes), ""))
        << schedule::name_of(f) << "\n"
        << unit;
  }
  EXPECT_GE(seen.size(), 1u);
}

TEST_F(NvrtcTest, InstancesOfHalf) {
  compile_tiles(problem(4096, 4096, DType::kF16, DType::kF16, "gelu(x + bias + residual)"));
}
TEST_F(NvrtcTest, InstancesOfBfloatWithEitherLayout) {
  compile_tiles(problem(4096, 192, DType::kBF16, DType::kF32, "silu(x + bias)", true, false));
}
TEST_F(NvrtcTest, InstancesOfNarrowProblems) {
  compile_tiles(problem(16, 4096, DType::kF16, DType::kF16, "hardswish(x + bias) * 0.5"));
}
TEST_F(NvrtcTest, InstancesOfOtherTypes) {
  compile_tiles(problem(64, 128, DType::kF32, DType::kF32, "tanh(x)"), 4);
  compile_tiles(problem(64, 128, DType::kF8E4M3, DType::kBF16, "relu(x)"), 4);
  compile_tiles(problem(64, 128, DType::kF8E5M2, DType::kF16, "sigmoid(x)"), 4);
  compile_tiles(problem(64, 128, DType::kI8, DType::kI32), 4);
  compile_tiles(problem(64, 128, DType::kI8, DType::kF16, "x * 0.01 + bias"), 4);
}

TEST_F(NvrtcTest, InstancesOfF32InTwoParts) {
  const auto two_parts = [](int64_t m, int64_t n) {
    ops::GemmProblem p = problem(m, n, DType::kF32, DType::kF32, "gelu(x + bias + residual)");
    p.tf32 = false;
    return p;
  };
  compile_tiles(two_parts(4096, 4096), 8);
  compile_tiles(two_parts(64, 128), 8);
  compile_tiles(two_parts(64, 128), 8, "cluster_splitk");
  compile_tiles(two_parts(64, 128), 8, "unaligned");
}

// What a tuner times of a problem compiles: rows at any address, every layout and type, all families.
TEST_F(NvrtcTest, WhatATunerTimes) {
  const auto odd = [](int64_t m, int64_t n, int64_t k, DType in, DType out, const char* epilogue = "",
                      bool transpose_a = false, bool transpose_b = true, int64_t batch = 1) {
    ops::GemmProblem p = problem(m, n, in, out, epilogue, transpose_a, transpose_b);
    p.k = k;
    p.batch = batch;
    return p;
  };
  const ops::GemmProblem problems[] = {
      odd(60, 31, 50, DType::kF16, DType::kF16, "", true, true, 3),
      odd(77, 121, 131, DType::kF16, DType::kF16, "x + bias", true, false, 3),
      odd(75, 141, 203, DType::kF16, DType::kBF16, "gelu(x + bias + residual)", true, false),
      odd(67, 523, 131, DType::kBF16, DType::kF16, "relu(x + bias)", false, false),
      odd(101, 69, 133, DType::kF8E4M3, DType::kBF16),
      odd(6195, 21, 11253, DType::kF16, DType::kF16),
  };
  const int most = static_cast<int>(test::instances(24, test::kOneOfNvrtc));
  std::vector<std::pair<std::string, std::string>> units;
  std::set<std::string> seen;
  for (const ops::GemmProblem& p : problems) {
    const ops::ResolvedGemm gemm = ops::resolve(p);
    for (const auto& c : ops::worthwhile(gemm, CudaTarget{}, most, "")) {
      std::string unit = ops::make_kernel(gemm.desc, c.config, CudaTarget{}).unit;
      if (seen.insert(unit).second) units.emplace_back(schedule::name_of(c.config), std::move(unit));
    }
  }
  std::vector<std::string> failures(units.size());
  ThreadPool pool(std::max(1, static_cast<int>(std::thread::hardware_concurrency())));
  pool.run(static_cast<int64_t>(units.size()), [&](int64_t begin, int64_t end, int) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
      try {
        failures[i] = test::find_wrong_loads(compile_cubin(units[i].second, "sm_90a", false).bytes);
      } catch (const Error& error) {
        failures[i] = units[i].first + ": " + error.what();
      }
    }
  });
  for (const std::string& failure : failures) EXPECT_EQ(failure, "");
}

TEST_F(NvrtcTest, EveryHeaderForCudaCompilesAlone) {
  const ::testing::ScopedTrace seed = test::trace_seed();
  const char* const folders[] = {"tile/arch/sm80/", "tile/arch/sm90/",   "tile/arch/cuda/",
                                 "tile/op/cuda/",   "tile/kernel/cuda/", "tile/core/"};
  int count = 0;
  for (const EmbeddedHeader& header : embedded_headers()) {
    const bool cuda =
        std::any_of(std::begin(folders), std::end(folders), [&](const char* f) { return header.path.starts_with(f); });
    if (!cuda) continue;
    ++count;
    if (!test::draws_instance(header.path)) continue;
    EXPECT_NO_THROW(compile_cubin("#include \"" + std::string(header.path) + "\"\n", "sm_90a", false)) << header.path;
  }
  EXPECT_GE(count, 8);
}

TEST_F(NvrtcTest, ALogTravelsInTheErrorAndASecondCompileComesFromTheCache) {
  try {
    compile_cubin("extern \"C\" __global__ void broken() { undeclared(); }", "sm_90a", true);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kCompilerFailed);
    EXPECT_NE(error.why().find("undeclared"), std::string::npos);
  }
  const std::string unit = "extern \"C\" __global__ void fine(int* p) { *p = 1; }";
  const CompiledCubin first = compile_cubin(unit, "sm_90a", true), second = compile_cubin(unit, "sm_90a", true);
  EXPECT_FALSE(first.from_cache);
  EXPECT_TRUE(second.from_cache);
  EXPECT_EQ(first.bytes, second.bytes);
  EXPECT_EQ(first.log, second.log);
}

// Moves 64 floats a thread at once, each to another place.
std::string moving(const std::string& name, const std::string& bounds) {
  return "extern \"C\" __global__ void __launch_bounds__(" + bounds + ") " + name +
         "(float* p) {\n"
         "  float x[64];\n"
         "#pragma unroll\n"
         "  for (int i = 0; i < 64; ++i) x[i] = p[i * 1024 + threadIdx.x];\n"
         "  __syncthreads();\n"
         "#pragma unroll\n"
         "  for (int i = 0; i < 64; ++i) p[(i * 7 % 64) * 1024 + threadIdx.x] = x[i] * x[(i + 5) % 64];\n"
         "}\n";
}

// What other tests look for in machine code is found where it is.
TEST_F(NvrtcTest, LoadsOfMachineCodeAreRead) {
  const std::string head =
      "#include \"tile/arch/sm80/global.h\"\n#include \"tile/arch/sm90/dependent.h\"\n"
      "using namespace heddle::tile;\n";
  const auto unit = [&](const char* body) {
    return fmt::format(
        "{}extern \"C\" __global__ void __launch_bounds__(32) take(const int* __restrict__ x, const sm80::Quad* q, "
        "int* y) {{\n"
        "  {}\n}}\n",
        head, body);
  };
  const std::string early = unit("sm90::grid_dependency_wait(); y[threadIdx.x] = x[threadIdx.x];");
  const std::string before = unit("const int v = *y; sm90::grid_dependency_wait(); y[threadIdx.x] = v;");
  const std::string late = unit("y[threadIdx.x] = x[threadIdx.x];");
  const std::string behind =
      unit("sm90::grid_dependency_wait(); y[threadIdx.x] = sm90::launder_after_wait(x)[threadIdx.x];");
  const std::string table = unit("sm90::grid_dependency_wait(); y[threadIdx.x] = sinf(y[threadIdx.x]);");
  const std::string part =
      unit("asm volatile(\"ld.relaxed.gpu.global.u32 %0, [%1];\" : \"=r\"(y[threadIdx.x]) : \"l\"(q));");
  const std::string whole =
      unit("const auto w = sm80::load_together(q).words; y[threadIdx.x] = w[0] ^ w[1] ^ w[2] ^ w[3];");
  const auto wrong = [&](const std::string& text, const char* architecture) {
    return test::find_wrong_loads(compile_cubin(text, architecture, false).bytes);
  };
  EXPECT_EQ(wrong(early, "sm_90a"), "take begins early and reads by ld.global.nc");
  EXPECT_EQ(wrong(before, "sm_90a"), "take begins early and reads before it waits");
  EXPECT_EQ(wrong(behind, "sm_90a"), "");
  EXPECT_EQ(wrong(table, "sm_90a"), "");
  for (const char* architecture : {"sm_80", "sm_90a"}) {
    EXPECT_EQ(wrong(late, architecture), "");
    EXPECT_EQ(wrong(part, architecture), "take reads 4 bytes of what is handed over in 16");
    EXPECT_EQ(wrong(whole, architecture), "");
    const auto code = test::decode_cubin(compile_cubin(whole, architecture, false).bytes);
    ASSERT_EQ(code.size(), 1u);
    EXPECT_EQ(code[0].kernel, "take");
    ASSERT_EQ(code[0].loads.size(), 1u);
    EXPECT_EQ(code[0].loads[0].bytes, 16);
    EXPECT_TRUE(code[0].loads[0].strong);
  }
}

// Kernels of every kind as models have them: recurrences, attention, products, stitches, bundles.
TEST_F(NvrtcTest, KernelsOfModels) {
  const ::testing::ScopedTrace seed = test::trace_seed();
  for (const char* name : test::draw<const char*>({"dien", "crnn", "transformer"})) {
    const std::string path = cache_.path() + "/" + name + ".onnx";
    zoo::write(name, {}, path);
    CompileOptions options;
    options.target = "cuda";
    options.precision = "f16";
    const driver::CompiledModel model = driver::compile_model(path, options);
    ASSERT_FALSE(model.plan->cubins.empty());
    for (const runtime::Cubin& cubin : model.plan->cubins) EXPECT_EQ(test::find_wrong_loads(cubin.bytes), "") << name;
  }
}

TEST_F(NvrtcTest, ASpillIsAnError) {
  const std::string unit = moving("spilling", "1024, 1");
  try {
    compile_cubin(unit, "sm_90a", false);
    FAIL() << "the compiler's report was not understood";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kCompilerFailed);
    EXPECT_NE(error.why().find("spill"), std::string::npos);
  }
  EXPECT_FALSE(compile_cubin(unit, "sm_90a", true, Slow::kAccept).bytes.empty());
  EXPECT_THROW(compile_cubin(unit, "sm_90a", true), Error) << "the cache has it, but not as a good one";
}

TEST_F(NvrtcTest, WhatSpillsGetsAMultiprocessorForEachBlock) {
  const std::string unit = moving("first", "256, 4") + moving("second", "128");
  const CompiledCubin compiled = compile_cubin(unit, "sm_90a", false);
  EXPECT_EQ(find_defect(compiled.log), "");
  EXPECT_NE(compiled.log.find("'first'"), std::string::npos);
}

TEST_F(NvrtcTest, ASpillIsReportedAtOnceWhereThatIsAsked) {
  const std::string unit = moving("first", "256, 4") + moving("second", "128");
  const CompiledCubin compiled = compile_cubin(unit, "sm_90a", false, Slow::kAcceptAtOnce);
  EXPECT_EQ(spilling_kernels(compiled.log), std::set<std::string>{"first"});
  EXPECT_TRUE(spilling_kernels(compile_cubin(unit, "sm_90a", false).log).empty());
}

// As the library's division of doubles, which no launch names.
TEST_F(NvrtcTest, ASubroutineThatSpillsIsAccepted) {
  codegen::KernelSource source;
  source.symbol = "kernel_of_it";
  source.includes = {"tile/op/cuda/stitch.h"};
  source.text =
      "__device__ __noinline__ void subroutine(float* p) {\n  float x[255];\n"
      "#pragma unroll\n  for (int i = 0; i < 255; ++i) x[i] = p[i * 1024];\n  __syncthreads();\n"
      "#pragma unroll\n  for (int i = 0; i < 255; ++i) p[(i * 7 % 255) * 1024] = x[i] * x[(i + 5) % 255];\n}\n"
      "extern \"C\" __global__ void __launch_bounds__(256) kernel_of_it(float* p) { subroutine(p); }\n";
  ASSERT_EQ(spilling_kernels(compile_cubin(source.text, "sm_90a", false, Slow::kAcceptAtOnce).log).size(), 1u);
  source.launches.emplace_back().symbol = source.symbol;
  driver::KernelSet kernels;
  kernels.add(source);
  const driver::MachineCode code = driver::compile_kernels(kernels, Target::cuda_h200(), 1, false);
  ASSERT_EQ(code.cubins.size(), 1u);
  EXPECT_EQ(code.cubins[0].symbols, std::vector<std::string>{"kernel_of_it"});
}

// One that has all registers there are would only be compiled to the same code.
TEST_F(NvrtcTest, OnlyKernelsWithBoundsToRelaxAreCompiledAgain) {
  std::string full;
  for (const char* line :
       {"extern \"C\" __global__ void __launch_bounds__(256, 1) full(float* p) {\n  float x[300];\n",
        "#pragma unroll\n  for (int i = 0; i < 300; ++i) x[i] = p[i * 1024];\n  __syncthreads();\n",
        "#pragma unroll\n  for (int i = 0; i < 300; ++i) p[(i * 7 % 300) * 1024] = x[i] * x[(i + 5) % 300];\n}\n"}) {
    full += line;
  }
  driver::KernelSet kernels;
  for (const auto& [symbol, text] : {std::pair{"first", moving("first", "256, 4")}, {"full", full}}) {
    codegen::KernelSource source;
    source.symbol = symbol;
    source.includes = {"tile/op/cuda/stitch.h"};
    source.text = text;
    source.launches.emplace_back().symbol = symbol;
    kernels.add(source);
  }
  const std::string unit = kernels.units({1})[0].text;
  ASSERT_EQ(spilling_kernels(compile_cubin(unit, "sm_90a", false, Slow::kAcceptAtOnce).log),
            (std::set<std::string>{"first", "full"}));
  std::vector<std::vector<std::string>> symbols;
  for (const auto& cubin : driver::compile_kernels(kernels, Target::cuda_h200(), 1, false).cubins) {
    symbols.push_back(cubin.symbols);
  }
  std::sort(symbols.begin(), symbols.end());
  EXPECT_EQ(symbols, (std::vector<std::vector<std::string>>{{"first"}, {"full"}}));
}

TEST(NvrtcLog, BoundsOfWhatSpilledAreRelaxed) {
  const auto spill = [](const std::string& name) {
    return "ptxas warning : Registers are spilled to local memory in function '" + name +
           "', 4 bytes spill stores, 4 bytes spill loads\nptxas    . 8 bytes stack frame, 4 bytes spill stores\n";
  };
  const std::string unit =
      "extern \"C\" __global__ void __launch_bounds__(64) a(int* p) { b(p); }\n"
      "extern \"C\" __global__ void __launch_bounds__(T<1, 2>::k, 3)\n    b(int* p) { }\n"
      "extern \"C\" __global__ void none(int* p) { }\n";
  EXPECT_EQ(relax_bounds(unit, "0 bytes spill stores"), unit);
  EXPECT_EQ(relax_bounds(unit, spill("none") + spill("unknown")), unit);
  const std::string a = relax_bounds(unit, spill("a")), both = relax_bounds(a, spill("b"));
  EXPECT_NE(a.find("__launch_bounds__(64, 1) a("), std::string::npos) << a;
  EXPECT_NE(a.find("__launch_bounds__(T<1, 2>::k, 3)"), std::string::npos) << a;
  EXPECT_NE(both.find("__launch_bounds__(T<1, 2>::k, 1)\n    b("), std::string::npos) << both;
  EXPECT_EQ(relax_bounds(both, spill("a") + spill("b")), both);
}

TEST(NvrtcLog, Defects) {
  EXPECT_EQ(find_defect("0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads"), "");
  EXPECT_NE(find_defect("0 bytes spill stores\n 16 bytes stack frame, 12 bytes spill stores, 8 bytes spill loads"), "");
  EXPECT_NE(find_defect("ptxas info : (C7510) Potential Performance Loss: wgmma.mma_async instructions"), "");
  EXPECT_NE(find_defect("warning (C7508) setmaxnreg ignored"), "");
}

TEST_F(NvrtcTest, CalibrationOfEveryArchitecture) {
  for (const int sm : {80, 89, 90}) {
    Target target = Target::cuda_h200(1);
    target.cuda.sm = sm;
    EXPECT_FALSE(
        compile_cubin(driver::cuda_calibration_unit(target.cuda), target.cuda.architecture(), false).bytes.empty())
        << sm;
  }
}

}  // namespace
}  // namespace heddle::jit
