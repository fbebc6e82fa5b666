// GEMM on a GPU against a float64 reference: every candidate that the model would time.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <ostream>

#include "driver/tune/gemm_bench.h"
#include "heddle/error.h"
#include "schedule/config/config_source.h"
#include "target/cuda_driver.h"

namespace heddle::driver {
namespace {

struct Case {
  int64_t m, n, k;
  DType in = DType::kF16, out = DType::kF16;
  const char* epilogue = "";
  bool a_k_major = true, b_k_major = true;
  int64_t batch = 1, pad = 0;  // pad: added to every leading dimension
  const char* family = "";     // only candidates of this one
  bool tf32 = true;            // f32 may be rounded
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << to_string(c.in) << " to " << to_string(c.out) << " " << c.batch << "x" << c.m << "x" << c.n << "x" << c.k
       << (c.a_k_major ? " n" : " t") << (c.b_k_major ? "t" : "n") << " pad " << c.pad << " " << c.epilogue;
}

// The emulator multiplies some hundred million times a second.
Case shrink(Case c) {
  constexpr int64_t kMost = 20'000'000;
  while (c.batch * c.m * c.n * c.k > kMost) {
    int64_t& longest = std::max({std::ref(c.m), std::ref(c.n), std::ref(c.k)}, std::less<int64_t>());
    longest /= 2;
  }
  return c;
}

class GemmOnGpu : public testing::TestWithParam<Case> {};

TEST_P(GemmOnGpu, EveryCandidateIsRight) {
  ::setenv("HEDDLE_EMULATED_SMS", "2", 0);  // an emulator: blocks have several tiles of small problems
  const auto devices = cuda_devices();
  if (devices.empty() || devices[0].target.sm != 90) GTEST_SKIP() << "no GPU of compute capability 9.0";
  const bool emulated = devices[0].target.emulated;
  const Case c = emulated ? shrink(GetParam()) : GetParam();
  ops::GemmProblem p;
  p.m = c.m;
  p.n = c.n;
  p.k = c.k;
  p.batch = c.batch;
  p.in = c.in;
  p.out = c.out;
  p.tf32 = c.in == DType::kF32 && c.tf32;
  p.transpose_a = !c.a_k_major;
  p.transpose_b = c.b_k_major;
  const DType type = c.out == DType::kI32 ? DType::kF32 : c.out;
  p.operands = {{.name = "bias", .dtype = type},
                {.name = "row_bias", .kind = ops::Operand::Kind::kRow, .dtype = type},
                {.name = "residual", .kind = ops::Operand::Kind::kMatrix, .dtype = type}};
  if (c.pad > 0) {
    p.lda = (c.a_k_major ? c.k : c.m) + c.pad;
    p.ldb = (c.b_k_major ? c.k : c.n) + c.pad;
    p.ldd = c.n + c.pad;
  }
  p.epilogue = c.epilogue;
  GemmBenchOptions options;
  options.verify = true;
  options.library = false;
  options.family = c.family;
  options.most = emulated ? 2 : 24;
  if (const char* most = std::getenv("HEDDLE_TEST_CANDIDATES")) options.most = std::atoi(most);
  options.repeats = 1;
  const GemmBenchResult result = bench_gemm(p, options);
  for (const GemmTiming& t : result.timings) {
    EXPECT_EQ(t.failure, "") << schedule::name_of(t.candidate.config);
    EXPECT_LE(t.error, 1) << schedule::name_of(t.candidate.config);
  }
  EXPECT_TRUE(result.verified);
  EXPECT_FALSE(result.timings.empty());
}

constexpr DType kF16 = DType::kF16, kBF16 = DType::kBF16, kF32 = DType::kF32;

INSTANTIATE_TEST_SUITE_P(Shapes, GemmOnGpu,
                         testing::Values(Case{128, 128, 64}, Case{1, 1, 1}, Case{1, 8, 8}, Case{64, 64, 0},
                                         Case{256, 512, 1024}, Case{1280, 768, 768}, Case{2048, 2048, 512},
                                         Case{130, 264, 200}, Case{130, 136, 1024}, Case{97, 101, 103},
                                         Case{1021, 509, 257}, Case{16, 4096, 4096}, Case{3, 1000, 520},
                                         Case{4096, 16, 1024}, Case{128, 128, 8192}, Case{5000, 64, 576}));
INSTANTIATE_TEST_SUITE_P(
    Types, GemmOnGpu,
    testing::Values(Case{512, 384, 640, kBF16, kBF16}, Case{512, 384, 640, kBF16, kF32},
                    Case{33, 65, 127, kBF16, kBF16}, Case{512, 384, 640, kF32, kF32}, Case{130, 70, 33, kF32, kF32},
                    Case{512, 384, 640, DType::kF8E4M3, kBF16}, Case{512, 384, 640, DType::kF8E5M2, kF16},
                    Case{100, 77, 333, DType::kF8E4M3, kBF16}, Case{512, 384, 640, DType::kI8, DType::kI32},
                    Case{99, 55, 1000, DType::kI8, DType::kI32}, Case{16, 4096, 4096, DType::kI8, DType::kI32},
                    Case{512, 384, 640, DType::kI8, kF32}));
INSTANTIATE_TEST_SUITE_P(
    F32, GemmOnGpu,
    testing::Values(Case{512, 384, 640, kF32, kF32, "relu(x + bias)", true, true, 1, 0, "", false},
                    Case{130, 70, 33, kF32, kF32, "", true, true, 1, 0, "", false},
                    Case{130, 72, 1000, kF32, kF32, "x + residual", true, false, 1, 0, "", false},
                    Case{99, 55, 47, kF32, kF16, "", false, true, 3, 0, "", false},
                    Case{64, 512, 512, kF32, kF32, "x + bias", true, true, 1, 0, "unaligned", false},
                    Case{2048, 2048, 512, kF32, kF32, "gelu(x + bias)", true, true, 1, 0, "wgmma", false},
                    Case{130, 264, 200, kF32, kF16, "x + bias + residual", true, true, 2, 8, "wgmma", false},
                    Case{200, 64, 96, kF32, kF16, "x + residual", true, true, 1, 0, "wgmma", false},
                    Case{16, 4096, 4096, kF32, kF32, "", true, true, 1, 0, "wgmma", false}));
INSTANTIATE_TEST_SUITE_P(
    Layouts, GemmOnGpu,
    testing::Values(Case{512, 384, 640, kF16, kF16, "", true, false}, Case{512, 384, 640, kF16, kF16, "", false, true},
                    Case{512, 384, 640, kF16, kF16, "", false, false}, Case{104, 88, 72, kF16, kF16, "", false, false},
                    Case{16, 1024, 2048, kBF16, kBF16, "", false, false}, Case{99, 55, 47, kF16, kF16, "", true, false},
                    Case{512, 384, 640, kF16, kF16, "", true, true, 1, 8},
                    Case{96, 80, 64, kF16, kF16, "", true, true, 1, 3},
                    Case{256, 128, 192, kF16, kF16, "", true, true, 5},
                    Case{60, 31, 50, kF16, kF16, "", false, true, 3}));
INSTANTIATE_TEST_SUITE_P(
    Epilogues, GemmOnGpu,
    testing::Values(
        Case{512, 384, 640, kF16, kF16, "relu(x + bias)"}, Case{300, 250, 64, kF16, kF16, "gelu(x + bias + residual)"},
        Case{512, 384, 640, kF16, kF16, "gelu(x + bias)"}, Case{264, 456, 128, kBF16, kBF16, "gelu(x + bias)"},
        Case{264, 96, 768, kF16, kF16, "gelu(x + bias)"}, Case{160, 136, 768, kF16, kF16, "gelu(x + bias + residual)"},
        Case{264, 456, 128, kF16, kF16, "softplus(x + bias)"}, Case{264, 456, 128, kBF16, kBF16, "softplus(x + bias)"},
        Case{512, 384, 640, kF16, kF16, "gelu(x + bias + residual)"},
        Case{512, 384, 640, kBF16, kBF16, "silu(x + bias)"}, Case{99, 55, 70, kF16, kF16, "hardswish(x + row_bias)"},
        Case{16, 2048, 2048, kF16, kF16, "softplus(x + bias + residual)"},
        Case{64, 64, 0, kF16, kF16, "tanh(x + bias)"}, Case{512, 384, 640, kF16, kF32, "sigmoid(x * 0.25)"},
        Case{512, 384, 640, DType::kI8, kF16, "relu(x * 0.001)"},
        Case{16, 2048, 2048, DType::kI8, kBF16, "x * 0.001 + bias"},
        Case{64, 48, 80, kF16, kF16, "x + bias + residual", true, true, 3}));

// Rows that do not begin at multiples of 16 bytes, of the operands and of D.
INSTANTIATE_TEST_SUITE_P(Unaligned, GemmOnGpu,
                         testing::Values(Case{143, 451, 211, kF16, kF16, "", true, true, 1, 0, "wgmma"},
                                         Case{301, 259, 67, kF16, kF16, "", true, true, 1, 0, "wgmma"},
                                         Case{67, 523, 131, kBF16, kF16, "relu(x + bias)", true, false, 1, 0, "wgmma"},
                                         Case{129, 77, 201, kF16, kF32, "", false, true, 1, 0, "wgmma"},
                                         Case{75, 141, 203, kF16, kBF16, "gelu(x + bias + residual)", false, false, 1,
                                              0, "wgmma"},
                                         Case{61, 83, 45, kF16, kF16, "x + row_bias", true, true, 5, 0, "wgmma"},
                                         Case{130, 134, 98, kF16, kF16, "", true, true, 2, 2, "wgmma"},
                                         Case{128, 136, 64, kF16, kF16, "x + residual", true, true, 3, 5, "wgmma"},
                                         Case{101, 69, 333, DType::kI8, DType::kI32, "", true, true, 1, 0, "wgmma"},
                                         Case{101, 69, 77, kF32, kF32, "x + bias", true, true, 3, 0, "wgmma"},
                                         Case{101, 69, 133, DType::kF8E4M3, kBF16, "", true, true, 1, 0, "wgmma"},
                                         Case{71, 211, 67, kF16, kF16, "", true, true, 1, 0, "mma"},
                                         Case{71, 211, 67, kF16, kF16, "x + bias", false, false, 3, 1, "mma"},
                                         Case{93, 111, 1031, kBF16, kBF16, "", false, true, 1, 0, "mma"},
                                         Case{93, 111, 131, kF16, kF16, "x + residual", true, false, 1, 3, "mma"},
                                         Case{71, 211, 67, kF16, kF16, "", true, true, 1, 0, "wgmma_gather"},
                                         Case{77, 121, 131, kF16, kF16, "x + bias", false, false, 3, 1, "wgmma_gather"},
                                         Case{1201, 21, 4099, kF16, kF16, "", true, true, 1, 0, "wgmma_gather"}));

TEST(Cuda, NoDeviceIsACleanError) {
  if (!cuda_devices().empty()) GTEST_SKIP() << "there is a GPU";
  ops::GemmProblem p;
  p.m = p.n = p.k = 64;
  try {
    bench_gemm(p, {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kDevice);
  }
}

}  // namespace
}  // namespace heddle::driver
