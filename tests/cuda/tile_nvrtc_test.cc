// Instances of the kernels over views compile for sm_80 and sm_90a without spills, where NVRTC is installed.
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "../tile_cuda/view_case.h"
#include "base/file/file.h"
#include "codegen/product/cuda/gemm.h"
#include "heddle/error.h"
#include "jit/cuda/nvrtc.h"
#include "ops/epilogue.h"
#include "tests/instances.h"

namespace heddle::jit {
namespace {

using schedule::CudaCandidate;
using testing_cuda::Image;
using testing_cuda::Matrix;
using testing_cuda::ViewCase;

class TileNvrtcTest : public testing::Test {
 protected:
  void SetUp() override {
    try {
      find_nvrtc();
    } catch (const Error& error) {
      GTEST_SKIP() << error.what();
    }
    ::setenv("HEDDLE_CACHE_DIR", cache_.path().c_str(), 1);
  }
  void TearDown() override { ::unsetenv("HEDDLE_CACHE_DIR"); }

  TempDir cache_;
};

Matrix matrix(DType element, int64_t rows, int64_t k, bool along_k) {
  Matrix m;
  m.element = element;
  m.rows = rows, m.k = k;
  m.along_k = along_k;
  m.leading = along_k ? k : rows;
  return m;
}

ViewCase problem(int64_t m, int64_t n, DType in, bool a_along_k = true, bool b_along_k = true, int64_t k = 4096) {
  ViewCase p;
  p.a_in = p.b_in = in;
  p.m = m, p.n = n, p.k = k;
  p.out_bytes = static_cast<int>(size_of(in));
  p.set_operands(matrix(in, m, k, a_along_k).view(0), matrix(in, n, k, b_along_k).view(1));
  return p;
}

std::string unit_of(const ViewCase& p, const schedule::Config& config, const ops::LoweredEpilogue& e) {
  const schedule::CudaInstance instance = view_family_of(config).instance_of(p, config);
  return codegen::gemm_unit(instance, p.texts, e.epilogue, e.operands).source();
}

// compile_cubin() throws on spills. `most` different tiles of a family, a part of them by default.
void compile_tiles(const ViewCase& p, std::string_view family, DType out, const char* architecture, size_t most) {
  most = test::instances(most, test::kOneOfNvrtc);
  CudaTarget target;
  target.sm = std::string_view(architecture) == "sm_80" ? 80 : 90;
  ops::GemmProblem gemm;
  gemm.m = p.m, gemm.n = p.n, gemm.k = p.k, gemm.out = out, gemm.ldd = p.n, gemm.stride_d = p.m * p.n;
  gemm.epilogue = "relu(x + bias)";
  gemm.operands = {{.name = "bias", .dtype = out, .stride = 0}};
  const ops::LoweredEpilogue e = ops::lower_epilogue(gemm, p.accumulator());
  std::set<std::string> seen;
  for (const CudaCandidate& c : enumerate(p, target)) {
    if (!c.rejected.empty() || family_of(c.config) != family || seen.size() == most) continue;
    if (!seen.insert(tile_name(c.config)).second) continue;
    const std::string unit = unit_of(p, c.config, e);
    EXPECT_NO_THROW(compile_cubin(unit, architecture, false)) << name_of(c.config) << "\n" << unit;
  }
  EXPECT_GE(seen.size(), 1u);
}

// What a GPU's tuner and tests take of a problem: the candidates of the best predictions, whatever they are.
void compile_best(const ViewCase& p, DType out, size_t most) {
  most = test::instances(most, test::kOneOfNvrtc);
  ops::GemmProblem gemm;
  gemm.m = p.m, gemm.n = p.n, gemm.k = p.k, gemm.out = out, gemm.ldd = p.n, gemm.stride_d = p.m * p.n;
  const ops::LoweredEpilogue e = ops::lower_epilogue(gemm, p.accumulator());
  std::set<std::string> seen;
  for (const CudaCandidate& c : enumerate(p, CudaTarget{})) {
    if (!c.rejected.empty() || seen.size() == most) break;
    const std::string unit = unit_of(p, c.config, e);
    if (!seen.insert(unit).second) continue;
    EXPECT_NO_THROW(compile_cubin(unit, "sm_90a", false)) << name_of(c.config);
  }
  EXPECT_GE(seen.size(), 1u);
}

TEST_F(TileNvrtcTest, BestTilesOfBytesThatAreTurned) {
  compile_best(problem(128, 80, DType::kI8, true, false, 99), DType::kI32, 12);
  compile_best(problem(300, 200, DType::kI8, false, false, 111), DType::kI32, 6);
}

TEST_F(TileNvrtcTest, TensorCoreTilesOfHalf) {
  compile_tiles(problem(4096, 4096, DType::kF16), "mma", DType::kF16, "sm_80", 8);
}
TEST_F(TileNvrtcTest, TensorCoreTilesAlongRows) {
  compile_tiles(problem(4096, 4096, DType::kBF16, false, false), "mma", DType::kBF16, "sm_90a", 4);
}
TEST_F(TileNvrtcTest, TensorCoreTilesOfUnalignedOperands) {
  compile_tiles(problem(4095, 4093, DType::kF16, true, false, 4091), "mma", DType::kF32, "sm_80", 3);
}
TEST_F(TileNvrtcTest, TensorCoreTilesOfOtherTypes) {
  ViewCase p = problem(2048, 2048, DType::kF32, true, false);
  p.tf32 = true;
  compile_tiles(p, "mma", DType::kF32, "sm_80", 3);
  compile_tiles(problem(2048, 2048, DType::kI8), "mma", DType::kI32, "sm_80", 2);
  compile_tiles(problem(2048, 2048, DType::kI8, true, false), "mma", DType::kI32, "sm_80", 3);
  compile_tiles(problem(2048, 2048, DType::kF8E4M3), "mma", DType::kF16, "sm_90a", 3);
}
TEST_F(TileNvrtcTest, TensorCoreTilesOfF32InTwoParts) {
  compile_tiles(problem(4096, 4096, DType::kF32, true, false), "mma", DType::kF32, "sm_80", 6);
  compile_tiles(problem(4095, 4093, DType::kF32, false, true, 4091), "mma", DType::kF32, "sm_90a", 4);
}
TEST_F(TileNvrtcTest, TensorCoreTilesOfImages) {
  Image image;
  image.images = 32;
  image.size = {1, 56, 56};
  image.window = {1, 3, 3};
  image.before = image.after = {0, 1, 1};
  {
    image.channels = 48;
    image.element = DType::kF32;
    ViewCase p = problem(image.rows(), 128, DType::kF32, true, true, image.k());
    p.set_operands(image.view(0), matrix(p.a_in, p.n, p.k, true).view(1));
    compile_tiles(p, "mma", DType::kF32, "sm_90a", 3);
    image.element = DType::kF16;
  }
  for (const int64_t channels : {64, 3}) {
    image.channels = channels;
    ViewCase p = problem(image.rows(), 128, DType::kF16, true, true, image.k());
    p.set_operands(image.view(0), matrix(p.a_in, p.n, p.k, true).view(1));
    compile_tiles(p, "mma", DType::kF16, "sm_80", channels == 3 ? 1 : 3);
  }
}
TEST_F(TileNvrtcTest, TensorCoreTilesOfConvertedOperands) {
  ViewCase p = problem(2048, 2048, DType::kF16);
  p.set_operands(matrix(DType::kF32, p.m, p.k, true).view(0), matrix(DType::kI8, p.n, p.k, true).view(1));
  compile_tiles(p, "mma", DType::kF16, "sm_80", 3);
}
TEST_F(TileNvrtcTest, OrdinaryArithmetic) {
  compile_tiles(problem(2048, 2048, DType::kF32), "simt", DType::kF32, "sm_80", 100);
  compile_tiles(problem(2048, 2048, DType::kF32, false, false), "simt", DType::kF32, "sm_90a", 3);
  compile_tiles(problem(2047, 2045, DType::kF16), "simt", DType::kF32, "sm_80", 3);
}
TEST_F(TileNvrtcTest, FewRowsOrColumns) {
  for (const int64_t few : {1, 8}) {
    compile_tiles(problem(few, 4096, DType::kF16), "skinny", DType::kF16, "sm_80", 2);
    compile_tiles(problem(4096, few, DType::kF16, false, false), "skinny", DType::kF16, "sm_90a", 2);
    compile_tiles(problem(few, 4096, DType::kF32, true, false), "skinny", DType::kF32, "sm_80", 2);
  }
}
TEST_F(TileNvrtcTest, FewResultsOfALongK) {
  struct Products {
    int64_t m, n, k;
    DType in, out;
    bool b_along_k;
    const char* architecture;
  };
  const Products products[] = {{3, 3, 100000, DType::kF16, DType::kF16, false, "sm_90a"},
                               {8, 8, 65536, DType::kF16, DType::kF32, true, "sm_90a"},
                               {4, 16, 50000, DType::kF32, DType::kF32, true, "sm_80"},
                               {5, 6, 50000, DType::kF64, DType::kF64, true, "sm_90a"},
                               {7, 9, 50001, DType::kI8, DType::kI32, false, "sm_80"}};
  bool along_k = false;  // of A: on an ordinary run one of both, in turns
  for (const Products& p : products) {
    for (int layouts = test::takes_all_instances() ? 2 : 1; layouts > 0; --layouts) {
      along_k = !along_k;
      compile_tiles(problem(p.m, p.n, p.in, along_k, p.b_along_k, p.k), "k_reduction", p.out, p.architecture, 3);
    }
  }
}

}  // namespace
}  // namespace heddle::jit
