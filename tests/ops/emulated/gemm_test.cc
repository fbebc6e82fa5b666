// The client API on the emulator: results, what it refuses, tuning.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <thread>

#include "base/file/file.h"
#include "heddle/ops.h"
#include "jit/cuda/nvrtc.h"
#include "ops/gemm_kernel.h"
#include "ops/prepared_kernel.h"
#include "ops/gemm_workload.h"
#include "runtime/cuda/device.h"
#include "runtime/cuda/launch.h"
#include "schedule/config/config_source.h"
#include "tests/error_of.h"
#include "tune/place.h"
#include "tune/random_data.h"

namespace heddle::ops {
namespace {

using runtime::CudaBuffer;
using runtime::CudaContext;
using test::error_of;
using testing::HasSubstr;

class OpsGemm : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    ::setenv("HEDDLE_CUDA_DRIVER", HEDDLE_EMULATOR, 0);
    ::setenv("HEDDLE_EMULATED_SMS", "8", 1);  // small grids of persistent kernels
    cache_ = new TempDir;
    ::setenv("HEDDLE_CACHE_DIR", cache_->path().c_str(), 1);
  }
  static void TearDownTestSuite() { delete cache_; }

  // A buffer of random elements, with its values.
  struct Data {
    std::unique_ptr<CudaBuffer> buffer;
    std::vector<double> values;
    void* address() const { return reinterpret_cast<void*>(buffer->address()); }
  };
  Data random(DType dtype, int64_t count, uint64_t seed) {
    std::vector<uint8_t> bytes(static_cast<size_t>(count) * size_of(dtype));
    tune::fill_random(bytes.data(), dtype, count, seed);
    Data data{std::make_unique<CudaBuffer>(*context_, bytes.size() + 64), tune::as_doubles(bytes.data(), dtype, count)};
    data.buffer->write(bytes.data(), bytes.size());
    return data;
  }
  std::vector<double> read(const CudaBuffer& buffer, DType dtype, int64_t count) {
    std::vector<uint8_t> bytes(static_cast<size_t>(count) * size_of(dtype));
    buffer.read(bytes.data(), bytes.size());
    return tune::as_doubles(bytes.data(), dtype, count);
  }

  // Everything that a call of a problem needs.
  struct Call {
    GemmProblem problem;  // resolved
    Data a, b, d;
    std::vector<Data> extra;
    std::vector<const void*> operands;
  };
  Call make_call(const GemmProblem& given) {
    Call c;
    c.problem = resolve(given).problem;
    const GemmProblem& p = c.problem;
    const bool ta = p.transpose_a, tb = p.transpose_b;
    c.a = random(p.in, extent_of(ta ? p.k : p.m, ta ? p.m : p.k, p.lda, p.stride_a, p.batch), 1);
    c.b = random(p.in, extent_of(tb ? p.n : p.k, tb ? p.k : p.n, p.ldb, p.stride_b, p.batch), 2);
    c.d = random(p.out, extent_of(p.m, p.n, p.ldd, p.stride_d, p.batch), 3);
    for (const Operand& o : p.operands) {
      c.extra.push_back(random(o.dtype, extent_of(o, p), 4 + c.extra.size()));
      c.operands.push_back(c.extra.back().address());
    }
    return c;
  }
  double sum_at(const Call& c, int64_t batch, int64_t row, int64_t column) const {
    const GemmProblem& p = c.problem;
    double sum = 0;
    for (int64_t k = 0; k < p.k; ++k) {
      const auto a = batch * p.stride_a + (p.transpose_a ? k * p.lda + row : row * p.lda + k);
      const auto b = batch * p.stride_b + (p.transpose_b ? column * p.ldb + k : k * p.ldb + column);
      sum += c.a.values[static_cast<size_t>(a)] * c.b.values[static_cast<size_t>(b)];
    }
    return sum;
  }
  // `epilogue` in double; what lies between the rows of D stays as it was.
  template <typename Epilogue>
  void expect_result(const Call& c, const Epilogue& epilogue, double bound = 0.02) {
    const GemmProblem& p = c.problem;
    const std::vector<double> got = read(*c.d.buffer, p.out, static_cast<int64_t>(c.d.values.size()));
    std::vector<double> expected = c.d.values;
    for (int64_t batch = 0; batch < p.batch; ++batch) {
      for (int64_t row = 0; row < p.m; ++row) {
        for (int64_t column = 0; column < p.n; ++column) {
          expected[static_cast<size_t>(batch * p.stride_d + row * p.ldd + column)] =
              epilogue(sum_at(c, batch, row, column), batch, row, column);
        }
      }
    }
    for (size_t i = 0; i < got.size(); ++i) {
      ASSERT_NEAR(got[i], expected[i], bound * (1 + std::abs(expected[i]))) << "element " << i;
    }
  }

  static TempDir* cache_;
  std::shared_ptr<const CudaContext> context_ = CudaContext::of_device(0);
  void* stream_ = context_->stream();
};
TempDir* OpsGemm::cache_ = nullptr;

double gelu(double x) {
  return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
}

GemmProblem fused_problem() {
  GemmProblem p;
  p.m = 37, p.n = 41, p.k = 72;
  p.transpose_b = true;
  p.epilogue = "gelu(x + bias) * 0.5 + residual";
  p.operands = {{.name = "bias"}, {.name = "residual", .kind = Operand::Kind::kMatrix}};
  return p;
}

// One name means a stream of each thread, with a workspace of its own.
TEST_F(OpsGemm, ThreadsHaveDefaultStreamsOfTheirOwn) {
  if (!context_->device().target.emulated) GTEST_SKIP() << "a GPU deals memory out in megabytes";
  GemmProblem p;
  p.m = 24, p.n = 24, p.k = 8192;  // in parts of k, whose sums are in the workspace
  p.in = p.out = DType::kF64;
  p.transpose_b = true;
  Call c = make_call(p);
  const Gemm gemm = Gemm::prepare(p);
  ASSERT_GT(gemm.workspace_bytes(), 0) << gemm.config();
  const auto free_bytes = [&] {
    size_t free = 0, total = 0;
    context_->check(context_->driver().memory_info(&free, &total), "cuMemGetInfo");
    return static_cast<int64_t>(free);
  };
  const auto call = [&] {
    gemm(c.a.address(), c.b.address(), c.d.address(), reinterpret_cast<void*>(uintptr_t{2}));
    expect_result(c, [](double x, int64_t, int64_t, int64_t) { return x; });
  };
  int64_t before = free_bytes();
  for (int i = 0; i < 2; ++i) {
    std::thread([&] {
      call();
      const int64_t after = free_bytes();
      EXPECT_LE(after, before - gemm.workspace_bytes());
      call();
      EXPECT_EQ(free_bytes(), after);
      before = after;
    }).join();
  }
}

TEST_F(OpsGemm, ComputesAFusedProduct) {
  Call c = make_call(fused_problem());
  const Gemm gemm = Gemm::prepare(fused_problem());
  EXPECT_THAT(gemm.reason(), HasSubstr("predicted by the model"));
  gemm(c.a.address(), c.b.address(), c.d.address(), stream_, c.operands);
  const auto epilogue = [&](double sum, int64_t, int64_t row, int64_t column) {
    return gelu(sum + c.extra[0].values[static_cast<size_t>(column)]) * 0.5 +
           c.extra[1].values[static_cast<size_t>(row * 41 + column)];
  };
  expect_result(c, epilogue);
  // The same through the convenience function, twice, from two threads.
  c.d.buffer->write(std::vector<uint8_t>(c.d.buffer->size()).data(), c.d.buffer->size());
  for (int i = 0; i < 2; ++i) {
    std::thread([&] {
      ops::gemm(fused_problem(), c.a.address(), c.b.address(), c.d.address(), stream_, c.operands);
    }).join();
  }
  expect_result(c, epilogue);
}

// Sums of what D gets over 32 columns, and maxima of something else over 16 rows.
TEST_F(OpsGemm, ReducesNeighbours) {
  GemmProblem problem{.m = 48, .n = 96, .k = 40, .batch = 2, .out = DType::kF32};
  problem.epilogue = "relu(x + bias)";
  problem.operands = {{.name = "bias"}};
  problem.reductions = {{}, {Reduction::Over::kRows, Reduction::Kind::kMax, "square(x)"}};
  Call c = make_call(problem);
  const int64_t sums = 2 * 48 * 3, maxima = 2 * 3 * 96;
  const CudaBuffer sum(*context_, sums * 4), maximum(*context_, maxima * 4);
  void* const results[] = {reinterpret_cast<void*>(sum.address()), reinterpret_cast<void*>(maximum.address())};
  ops::gemm(problem, c.a.address(), c.b.address(), c.d.address(), stream_, c.operands, {}, results);
  expect_result(c, [&](double x, int64_t, int64_t, int64_t column) {
    return std::max(x + c.extra[0].values[static_cast<size_t>(column)], 0.0);
  });
  const std::vector<double> got_sums = read(sum, DType::kF32, sums), got_maxima = read(maximum, DType::kF32, maxima);
  const std::vector<double> d = read(*c.d.buffer, DType::kF32, 2 * 48 * 96);
  for (int64_t i = 0; i < sums; ++i) {
    double wanted = 0;
    for (int64_t j = 0; j < 32; ++j) wanted += d[static_cast<size_t>(32 * i + j)];
    ASSERT_NEAR(got_sums[static_cast<size_t>(i)], wanted, 1e-5 * (1 + wanted)) << i;
  }
  for (int64_t i = 0; i < maxima; ++i) {
    const int64_t group = i / 96, batch = group / 3;
    double wanted = 0;
    for (int64_t j = 0; j < 16; ++j) {
      const double x = sum_at(c, batch, group % 3 * 16 + j, i % 96);
      wanted = std::max(wanted, x * x);
    }
    ASSERT_NEAR(got_maxima[static_cast<size_t>(i)], wanted, 1e-3 * (1 + wanted)) << i;
  }
}

// Of a row that is no number: its sums, and all maxima in which it takes part.
TEST_F(OpsGemm, ReductionsOfNaN) {
  const GemmProblem problem{.m = 32,
                            .n = 64,
                            .k = 8,
                            .out = DType::kF32,
                            .reductions = {{}, {Reduction::Over::kRows, Reduction::Kind::kMax}}};
  Call c = make_call(problem);
  constexpr int64_t kRow = 21;
  const std::vector<uint16_t> nan(8, 0x7e00);
  c.a.buffer->write(nan.data(), nan.size() * 2, kRow * 8 * 2);
  const CudaBuffer sum(*context_, 64 * 4), maximum(*context_, 128 * 4);
  Gemm::prepare(problem)(c.a.address(), c.b.address(), c.d.address(), stream_, {},
                         {reinterpret_cast<void*>(sum.address()), reinterpret_cast<void*>(maximum.address())});
  const std::vector<double> sums = read(sum, DType::kF32, 64), maxima = read(maximum, DType::kF32, 128);
  for (int64_t i = 0; i < 64; ++i) EXPECT_EQ(std::isnan(sums[static_cast<size_t>(i)]), i / 2 == kRow) << i;
  for (int64_t i = 0; i < 128; ++i) EXPECT_EQ(std::isnan(maxima[static_cast<size_t>(i)]), i / 64 == kRow / 16) << i;
}

// Candidates are compared by D and by what they reduce.
TEST_F(OpsGemm, TrialsLookAtReductions) {
  const GemmProblem problem{.m = 32, .n = 64, .k = 8, .out = DType::kF32, .reductions = {{}}};
  const ResolvedGemm resolved = resolve(problem);
  GemmWorkload workload(*context_, resolved, true, 1);
  const std::vector<uint64_t> at = workload.operands(0, 0);
  const auto pointer = [&](size_t i) { return reinterpret_cast<void*>(at[i]); };
  const Gemm gemm = Gemm::prepare(problem);
  for (int run = 0; run < 2; ++run) {
    workload.poison();
    gemm(pointer(0), pointer(1), pointer(2), stream_, {}, {pointer(3)});
    EXPECT_LE(workload.check(), 1);
  }
  for (const uint8_t byte : {0xFF, 0x50}) {  // not written; 1.4e10
    context_->check(context_->driver().set_d8_async(at[3], byte, 4, context_->stream()), "cuMemsetD8Async");
    EXPECT_EQ(workload.check(), INFINITY);
  }
}

TEST_F(OpsGemm, RefusesWrongReductions) {
  const auto said = [](const std::function<void(GemmProblem&)>& change) {
    GemmProblem p{.m = 32, .n = 64, .k = 16, .reductions = {{}}};
    change(p);
    return std::string(error_of([&] { Gemm::prepare(p); }).what());
  };
  EXPECT_THAT(said([](auto& p) { p.n = 72; }), HasSubstr("D has 72 columns, no multiple of 32"));
  EXPECT_THAT(said([](auto& p) { p.m = 24, p.reductions[0].over = Reduction::Over::kRows; }),
              HasSubstr("D has 24 rows, no multiple of 16"));
  EXPECT_THAT(said([](auto& p) { p.reductions[0].expression = "x + y"; }), HasSubstr("no operand \"y\""));
  EXPECT_THAT(said([](auto& p) { p.k = 0; }), HasSubstr("k is 0"));
  EXPECT_THAT(said([](auto& p) { p.in = DType::kI8, p.out = DType::kI32; }), HasSubstr("sums of i8 are i32"));
  const GemmProblem p{.m = 32, .n = 64, .k = 16, .reductions = {{}}};
  const Call c = make_call(p);
  const Gemm gemm = Gemm::prepare(p);
  const auto call = [&](std::initializer_list<void*> results) {
    return std::string(
        error_of([&] { gemm(c.a.address(), c.b.address(), c.d.address(), stream_, {}, results); }).what());
  };
  EXPECT_THAT(call({}), HasSubstr("0 results of reductions are given, it has 1"));
  EXPECT_THAT(call({c.d.address()}), HasSubstr("reduction 0: it overlaps D"));
  EXPECT_THAT(call({c.a.address()}), HasSubstr("reduction 0: its result overlaps another operand"));
}

TEST_F(OpsGemm, BatchesStridesScalarsAndRows) {
  GemmProblem p;
  p.m = 19, p.n = 23, p.k = 17, p.batch = 3;
  p.in = p.out = DType::kF32;
  p.transpose_a = true;
  p.lda = 21, p.ldb = 29, p.ldd = 31;
  p.stride_a = 400, p.stride_b = 500, p.stride_d = 700;
  p.epilogue = "x * scale + row + bias";
  p.operands = {{.name = "scale", .kind = Operand::Kind::kScalar, .dtype = DType::kF32, .stride = 1},
                {.name = "row", .kind = Operand::Kind::kRow, .dtype = DType::kF32, .stride = 20},
                {.name = "bias", .dtype = DType::kF16}};
  const Call c = make_call(p);
  Gemm::prepare(p)(c.a.address(), c.b.address(), c.d.address(), stream_, c.operands);
  expect_result(
      c,
      [&](double sum, int64_t batch, int64_t row, int64_t column) {
        return sum * c.extra[0].values[static_cast<size_t>(batch)] +
               c.extra[1].values[static_cast<size_t>(batch * 20 + row)] +
               c.extra[2].values[static_cast<size_t>(column)];
      },
      1e-4);
}

TEST_F(OpsGemm, OtherTypes) {
  struct Case {
    DType in, out;
    bool tf32;
    double bound;
  };
  for (const Case& t : {Case{DType::kBF16, DType::kF32, false, 1e-3}, Case{DType::kF32, DType::kF32, true, 0.02},
                        Case{DType::kI8, DType::kI32, false, 0}, Case{DType::kF64, DType::kF64, false, 1e-10},
                        Case{DType::kF8E4M3, DType::kBF16, false, 0.05}}) {
    GemmProblem p;
    p.m = 20, p.n = 24, p.k = 48;
    p.in = t.in, p.out = t.out, p.tf32 = t.tf32;
    p.transpose_b = true;
    const Call c = make_call(p);
    Gemm::prepare(p)(c.a.address(), c.b.address(), c.d.address(), stream_);
    SCOPED_TRACE(std::string(to_string(t.in)));
    expect_result(
        c, [](double sum, int64_t, int64_t, int64_t) { return sum; }, t.bound);
  }
}

TEST_F(OpsGemm, EmptyProductsAndEmptySums) {
  GemmProblem p = fused_problem();
  p.k = 0;
  p.epilogue = "x + bias";
  const Call c = make_call(p);
  Gemm::prepare(p)(nullptr, nullptr, c.d.address(), stream_, c.operands);
  expect_result(
      c, [&](double, int64_t, int64_t, int64_t column) { return c.extra[0].values[static_cast<size_t>(column)]; });
  for (auto size : {&GemmProblem::m, &GemmProblem::n, &GemmProblem::batch}) {
    GemmProblem none;
    none.m = none.n = none.k = 8;
    none.*size = 0;
    const Gemm gemm = Gemm::prepare(none);
    gemm(nullptr, nullptr, nullptr, stream_);
    EXPECT_EQ(gemm.config(), "nothing to compute");
  }
}

// A NaN or an infinity is seen in its own row and nowhere else: what fills up tiles is neither.
// Rows that begin anywhere are read with what is in front of them: it does not count, whatever it is.
TEST_F(OpsGemm, RowsOfClassesDoNotSeeTheirNeighbours) {
  GemmProblem p;
  p.m = 261, p.n = 21, p.k = 75;
  p.transpose_b = true;
  const CudaTarget& target = context_->device().target;
  const ResolvedGemm gemm = resolve(p);
  int found = 0;
  for (const schedule::CudaCandidate& candidate : all_candidates(gemm, target)) {
    if (family_of(candidate.config) != "misaligned" || !candidate.rejected.empty() || ++found > 3) continue;
    SCOPED_TRACE(schedule::name_of(candidate.config));
    Call c = make_call(p);
    constexpr double kInf = std::numeric_limits<double>::infinity();
    for (const int64_t row : {int64_t{1}, int64_t{7}, p.m - 2}) {
      const auto at = static_cast<size_t>(row * p.k + p.k - 1);
      const auto bits = static_cast<uint16_t>(encode_float(DType::kF16, kInf));
      c.a.values[at] = kInf;
      c.a.buffer->write(&bits, sizeof(bits), at * sizeof(bits));
    }
    const KernelText kernel = make_kernel(gemm.desc, candidate.config, target);
    const runtime::CudaModule module(*context_, jit::compile_cubin(kernel.unit, target.architecture(), true).bytes);
    const CudaBuffer workspace(*context_, static_cast<size_t>(kernel.workspace_bytes));
    const runtime::CudaSequence sequence(
        *context_, module, kernel.launches,
        {c.a.buffer->address(), c.b.buffer->address(), c.d.buffer->address(), workspace.address(), 0});
    sequence.enqueue();
    const std::vector<double> got = read(*c.d.buffer, DType::kF16, p.m * p.n);
    for (int64_t row = 0; row < p.m; ++row) {
      for (int64_t column = 0; column < p.n; ++column) {
        const double sum = sum_at(c, 0, row, column), d = got[static_cast<size_t>(row * p.n + column)];
        ASSERT_EQ(std::isfinite(sum), std::isfinite(d)) << row << ", " << column;
        if (!std::isfinite(sum)) continue;
        ASSERT_NEAR(d, sum, 0.02 * (1 + std::abs(sum))) << row << ", " << column;
      }
    }
  }
  EXPECT_GT(found, 0);
}

TEST_F(OpsGemm, NaNAndInfinityStayInTheirRows) {
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN(), kInf = std::numeric_limits<double>::infinity();
  struct Case {
    int64_t m, n, k;
    DType in, out;
    bool tf32;
  };
  for (const Case& t :
       {Case{37, 41, 72, DType::kF16, DType::kF16, false}, Case{64, 64, 64, DType::kBF16, DType::kF32, false},
        Case{3, 33, 1000, DType::kBF16, DType::kBF16, false}, Case{130, 24, 33, DType::kF32, DType::kF32, true},
        Case{19, 65, 47, DType::kF32, DType::kF32, false}, Case{16, 16, 4096, DType::kF16, DType::kF32, false},
        Case{9, 17, 5, DType::kF64, DType::kF64, false}}) {
    GemmProblem p;
    p.m = t.m, p.n = t.n, p.k = t.k;
    p.in = t.in, p.out = t.out, p.tf32 = t.tf32;
    p.transpose_b = true;
    Call c = make_call(p);
    const auto put = [&](int64_t row, int64_t k, double value) {
      const auto at = static_cast<size_t>(row * c.problem.lda + k);
      c.a.values[at] = value;
      uint8_t bytes[sizeof(double)] = {};
      if (t.in == DType::kF64) {
        std::memcpy(bytes, &value, sizeof(double));
      } else if (t.in == DType::kF32) {
        const auto single = static_cast<float>(value);
        std::memcpy(bytes, &single, sizeof(float));
      } else {
        const auto bits = static_cast<uint16_t>(encode_float(t.in, value));
        std::memcpy(bytes, &bits, sizeof(bits));
      }
      c.a.buffer->write(bytes, size_of(t.in), at * size_of(t.in));
    };
    put(1, t.k - 1, kNaN);
    put(t.m - 1, 0, kInf);
    const Gemm gemm = Gemm::prepare(p);
    gemm(c.a.address(), c.b.address(), c.d.address(), stream_);
    SCOPED_TRACE(gemm.config());
    const std::vector<double> got = read(*c.d.buffer, t.out, static_cast<int64_t>(c.d.values.size()));
    for (int64_t row = 0; row < t.m; ++row) {
      for (int64_t column = 0; column < t.n; ++column) {
        const double sum = sum_at(c, 0, row, column), d = got[static_cast<size_t>(row * c.problem.ldd + column)];
        if (!std::isfinite(sum)) {
          ASSERT_TRUE(std::isnan(sum) ? std::isnan(d) : d == sum)
              << row << ", " << column << ": " << d << ", not " << sum;
        } else {
          ASSERT_NEAR(d, sum, 0.02 * (1 + std::abs(sum))) << row << ", " << column;
        }
      }
    }
  }
}

TEST_F(OpsGemm, DMayBeTheResidualItself) {
  GemmProblem p;
  p.m = 21, p.n = 40, p.k = 33;
  p.epilogue = "x + r";
  p.operands = {{.name = "r", .kind = Operand::Kind::kMatrix}};
  const Call c = make_call(p);
  Gemm::prepare(p)(c.a.address(), c.b.address(), c.d.address(), stream_, {c.d.address()});
  expect_result(c, [&](double sum, int64_t, int64_t row, int64_t column) {
    return sum + c.d.values[static_cast<size_t>(row * 40 + column)];
  });
}

TEST_F(OpsGemm, RefusesWrongCalls) {
  const GemmProblem p = fused_problem();
  const Call c = make_call(p);
  const Gemm gemm = Gemm::prepare(p);
  const auto said = [&](const void* a, const void* b, void* d, std::vector<const void*> operands) {
    const Error error = error_of([&] { gemm(a, b, d, stream_, operands); });
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return std::string(error.what());
  };
  const auto off = [](const void* address, int64_t bytes) {
    return static_cast<void*>(static_cast<char*>(const_cast<void*>(address)) + bytes);
  };
  void* const a = c.a.address();
  void* const b = c.b.address();
  void* const d = c.d.address();
  EXPECT_THAT(said(off(a, 2), b, d, c.operands), HasSubstr("gemm: A: its address 0x"));
  EXPECT_THAT(said(off(a, 2), b, d, c.operands), HasSubstr("not a multiple of 16"));
  EXPECT_THAT(said(a, nullptr, d, c.operands), HasSubstr("gemm: B: its address is null"));
  EXPECT_THAT(said(a, b, d, {c.operands[0], off(c.operands[1], 8)}), HasSubstr("operand \"residual\": its address"));
  EXPECT_THAT(said(a, b, d, {c.operands[0]}), HasSubstr("1 operands are given, its epilogue has 2"));
  EXPECT_THAT(said(a, b, off(a, 64), c.operands), HasSubstr("gemm: A: it overlaps D"));
  EXPECT_THAT(said(a, b, off(b, -64), c.operands), HasSubstr("gemm: B: it overlaps D"));
  EXPECT_THAT(said(a, b, off(c.operands[1], 16), c.operands), HasSubstr("operand \"residual\": it overlaps D"));
  EXPECT_THAT(said(a, b, d, {d, c.operands[1]}), HasSubstr("operand \"bias\": it overlaps D"));
}

TEST_F(OpsGemm, RefusesWrongProblems) {
  const auto error = [](const std::function<void(GemmProblem&)>& change) {
    GemmProblem p = fused_problem();
    change(p);
    return error_of([&] { Gemm::prepare(p); });
  };
  EXPECT_THAT(error([](auto& p) { p.lda = 71; }).what(),
              HasSubstr("leading dimension of A is 71, smaller than a row of 72"));
  EXPECT_THAT(error([](auto& p) { p.ldd = 40; }).what(), HasSubstr("leading dimension of D is 40"));
  EXPECT_THAT(error([](auto& p) { p.m = -1; }).what(), HasSubstr("m is -1"));
  EXPECT_THAT(error([](auto& p) { p.n = int64_t{1} << 31; }).what(), HasSubstr("n is 2147483648"));
  EXPECT_THAT(error([](auto& p) { p.batch = p.m = p.n = 2147483647; }).what(), HasSubstr("beyond any memory"));
  EXPECT_THAT(error([](auto& p) { p.batch = 2, p.stride_d = 7; }).what(), HasSubstr("batches of D overlap"));
  EXPECT_THAT(error([](auto& p) { p.stride_a = -4; }).what(), HasSubstr("batch stride of A is negative"));
  EXPECT_THAT(error([](auto& p) { p.tf32 = true; }).what(), HasSubstr("tf32 is for f32 operands"));
  const Error pair = error([](auto& p) { p.out = DType::kI32; });
  EXPECT_EQ(pair.code(), ErrorCode::kUnsupportedType);
  EXPECT_THAT(pair.what(), HasSubstr("f16 operands cannot give i32. There are"));
  EXPECT_EQ(error([](auto& p) { p.in = DType::kI64; }).code(), ErrorCode::kUnsupportedType);
  EXPECT_THAT(error([](auto& p) { p.epilogue = "x + bais"; }).what(), HasSubstr("bias, residual"));
  EXPECT_EQ(error_of([] { Gemm::prepare(fused_problem(), {.device = 7}); }).code(), ErrorCode::kDevice);
}

TEST_F(OpsGemm, InstancesHaveReasons) {
  const std::vector<GemmInstance> list = gemm_instances(fused_problem());
  ASSERT_GE(list.size(), 10u);
  EXPECT_EQ(list.front().rejected, "");
  double last = 0;
  size_t rejected = 0;
  for (const GemmInstance& instance : list) {
    if (!instance.rejected.empty()) {
      ++rejected;
      continue;
    }
    EXPECT_EQ(rejected, 0u);
    EXPECT_GE(instance.predicted_us, last);
    last = instance.predicted_us;
  }
  EXPECT_GE(rejected, 1u);
  EXPECT_EQ(Gemm::prepare(fused_problem()).config(), list.front().name);
}

TEST_F(OpsGemm, TuningIsKeptAndUsed) {
  GemmProblem p;
  p.m = 16, p.n = 24, p.k = 40;
  p.epilogue = "relu(x)";
  const Gemm tuned = Gemm::prepare(p, {.tune_seconds = 0.5});
  EXPECT_THAT(tuned.reason(), HasSubstr("measured: "));
  const auto record = tune::user_database().find(tune::place_of(context_->device()), resolve(p).text());
  ASSERT_TRUE(record);
  EXPECT_EQ(record->winner, tuned.config());
  EXPECT_GE(record->candidates, 2);
  // Another operator for the same problem finds it; one for another problem does not.
  const Gemm again = Gemm::prepare(p);
  EXPECT_EQ(again.config(), tuned.config());
  EXPECT_THAT(again.reason(), HasSubstr("tuned: "));
  const Call c = make_call(p);
  again(c.a.address(), c.b.address(), c.d.address(), stream_);
  expect_result(c, [](double sum, int64_t, int64_t, int64_t) { return std::max(sum, 0.0); });
  p.n = 32;
  EXPECT_THAT(Gemm::prepare(p).reason(), HasSubstr("predicted"));
}

TEST_F(OpsGemm, AWorkspaceBelongsToAStream) {
  GemmProblem p;
  p.m = 16, p.n = 16, p.k = 4096;
  const Gemm gemm = Gemm::prepare(p);
  const Call c = make_call(p), other = make_call(p);
  const runtime::CudaStream stream(*context_);
  gemm(c.a.address(), c.b.address(), c.d.address(), stream_);
  gemm(other.a.address(), other.b.address(), other.d.address(), stream.handle());
  stream.synchronize();
  const auto plain = [](double sum, int64_t, int64_t, int64_t) { return sum; };
  expect_result(c, plain);
  expect_result(other, plain);
}

}  // namespace
}  // namespace heddle::ops
