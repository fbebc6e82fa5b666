// Problems of the client API are refused before a device is asked.
#include "ops/gemm_kernel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/error_of.h"

namespace heddle::ops {
namespace {

using test::error_of;
using testing::HasSubstr;

constexpr int64_t kMost = INT32_MAX;

GemmProblem cube() {
  GemmProblem p;
  p.m = p.n = p.k = 64;
  return p;
}

Error refusal(const GemmProblem& p) {
  return error_of([&] { resolve(p); });
}

TEST(GemmProblem, ExtentsAreCountedIn32Bits) {
  for (int64_t GemmProblem::*extent : {&GemmProblem::m, &GemmProblem::n, &GemmProblem::k, &GemmProblem::batch}) {
    for (const int64_t wrong : {int64_t{-1}, kMost + 1, INT64_MIN, INT64_MAX}) {
      GemmProblem p = cube();
      p.*extent = wrong;
      EXPECT_EQ(refusal(p).code(), ErrorCode::kInvalidArgument) << wrong;
      EXPECT_THAT(refusal(p).why(), HasSubstr("it must be 0 to 2147483647"));
    }
    GemmProblem p = cube();
    p.*extent = kMost;
    EXPECT_NO_THROW(resolve(p));
  }
}

TEST(GemmProblem, RowsOfAMatrixDoNotOverlap) {
  for (int64_t GemmProblem::*leading : {&GemmProblem::lda, &GemmProblem::ldb, &GemmProblem::ldd}) {
    for (const int64_t wrong : {int64_t{63}, int64_t{-64}}) {
      GemmProblem p = cube();
      p.*leading = wrong;
      EXPECT_EQ(refusal(p).code(), ErrorCode::kInvalidArgument);
      EXPECT_THAT(refusal(p).why(), HasSubstr("smaller than a row of 64 elements"));
    }
  }
}

TEST(GemmProblem, BatchesOfDDoNotOverlap) {
  GemmProblem p = cube();
  p.batch = 2, p.stride_d = 64 * 64 - 1;
  EXPECT_EQ(refusal(p).code(), ErrorCode::kInvalidArgument);
  p.stride_d = 64 * 64;
  EXPECT_NO_THROW(resolve(p));
  for (int64_t GemmProblem::*stride : {&GemmProblem::stride_a, &GemmProblem::stride_b, &GemmProblem::stride_d}) {
    GemmProblem negative = cube();
    negative.*stride = -64;
    EXPECT_THAT(refusal(negative).why(), HasSubstr("is negative (-64)"));
  }
}

TEST(GemmProblem, AMatrixFitsIntoMemory) {
  GemmProblem p = cube();
  p.m = p.n = p.batch = kMost;
  EXPECT_THAT(refusal(p).why(), HasSubstr("beyond any memory"));
  for (int64_t GemmProblem::*leading : {&GemmProblem::lda, &GemmProblem::ldb, &GemmProblem::ldd}) {
    GemmProblem far = cube();
    far.*leading = INT64_MAX / 64;
    EXPECT_THAT(refusal(far).why(), HasSubstr("beyond any memory"));
  }
  for (int64_t GemmProblem::*stride : {&GemmProblem::stride_a, &GemmProblem::stride_b, &GemmProblem::stride_d}) {
    GemmProblem far = cube();
    far.batch = 2;
    far.*stride = INT64_MAX / 2;
    EXPECT_THAT(refusal(far).why(), HasSubstr("beyond any memory"));
  }
}

TEST(GemmProblem, PairsOfTypesThatNoKernelHas) {
  for (const auto& [in, out] : {std::pair{DType::kF64, DType::kF16},
                                {DType::kF16, DType::kI32},
                                {DType::kI8, DType::kF64},
                                {DType::kI64, DType::kI64},
                                {DType::kBool, DType::kF32}}) {
    GemmProblem p = cube();
    p.in = in, p.out = out;
    EXPECT_EQ(refusal(p).code(), ErrorCode::kUnsupportedType) << to_string(in) << " " << to_string(out);
    EXPECT_THAT(refusal(p).why(), HasSubstr("operands cannot give"));
  }
}

// wgmma reads fp8 along k alone; other families take B as it is.
TEST(GemmProblem, Fp8ByRowsOfBIsForOtherFamilies) {
  GemmProblem p = cube();
  p.in = DType::kF8E4M3;
  bool runs = false;
  for (const auto& c : all_candidates(resolve(p), CudaTarget{})) {
    if (!c.rejected.empty()) continue;
    runs = true;
    EXPECT_NE(family_of(c.config), "wgmma") << schedule::name_of(c.config);
  }
  EXPECT_TRUE(runs);
}

// A product of short k with a residual moves as many bytes for the residual as for D.
GemmProblem with_residual(bool residual) {
  GemmProblem p;
  p.m = 100352, p.n = 256, p.k = 64;
  p.epilogue = residual ? "relu(x + residual)" : "relu(x)";
  if (residual) p.operands = {{.name = "residual", .kind = Operand::Kind::kMatrix}};
  return p;
}

TEST(GemmPrediction, CountsWhatTheEpilogueReads) {
  for (const std::string family : {"wgmma", "mma", "simt"}) {
    const auto least = [&](bool residual) {
      return worthwhile(resolve(with_residual(residual)), CudaTarget{}, 1, family).front().config.predicted_us;
    };
    const double bytes = 2.0 * 100352 * 256;
    EXPECT_GT(least(true) - least(false), 0.5 * bytes / CudaTarget{}.model.mma.memory_per_us) << family;
  }
}

TEST(GemmPrediction, ASlowerMemoryMakesNoOtherFamilyBetter) {
  for (const KnownChip* chip : {&h200(), &h100()}) {
    CudaTarget target;
    target.model = chip->model;
    const auto first = worthwhile(resolve(with_residual(true)), target, 1).front().config;
    EXPECT_EQ(family_of(first), "wgmma") << chip->name << ": " << schedule::name_of(first);
  }
}

}  // namespace
}  // namespace heddle::ops
