// Products of f32 in two parts of tf32 are as exact as ordinary ones, for special values too, in every family.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <functional>
#include <limits>
#include <random>

#include "base/file/file.h"
#include "jit/cuda/nvrtc.h"
#include "ops/gemm_kernel.h"
#include "ops/prepared_kernel.h"
#include "runtime/cuda/device.h"
#include "runtime/cuda/launch.h"
#include "schedule/config/config_source.h"
#include "tests/instances.h"

namespace heddle::ops {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity(), kNaN = std::numeric_limits<float>::quiet_NaN(),
                kMax = std::numeric_limits<float>::max(), kMin = std::numeric_limits<float>::denorm_min();

struct Matrices {
  GemmProblem problem;
  std::vector<float> a, b;

  Matrices(int64_t m, int64_t n, int64_t k, const std::function<float(std::mt19937_64&)>& element) {
    problem.m = m, problem.n = n, problem.k = k;
    problem.in = problem.out = DType::kF32;
    problem.transpose_b = true;
    std::mt19937_64 random(static_cast<uint64_t>(m * 31 + n * 7 + k));
    a.resize(static_cast<size_t>(m * k)), b.resize(static_cast<size_t>(n * k));
    for (float& x : a) x = element(random);
    for (float& x : b) x = element(random);
  }
  float& at_a(int64_t row, int64_t k) { return a[static_cast<size_t>(row * problem.k + k)]; }
  float& at_b(int64_t column, int64_t k) { return b[static_cast<size_t>(column * problem.k + k)]; }
};

float normal(std::mt19937_64& random) {
  return static_cast<float>(std::normal_distribution<double>()(random));
}

class SplitF32 : public testing::TestWithParam<const char*> {
 protected:
  static void SetUpTestSuite() {
    ::setenv("HEDDLE_CUDA_DRIVER", HEDDLE_EMULATOR, 0);
    ::setenv("HEDDLE_EMULATED_SMS", "8", 1);  // blocks have several tiles
    cache_ = new TempDir;
    ::setenv("HEDDLE_CACHE_DIR", cache_->path().c_str(), 1);
  }
  static void TearDownTestSuite() { delete cache_; }

  // D by the family's candidate number `number` of the best.
  std::vector<float> multiply(const Matrices& x, int number) {
    const ResolvedGemm gemm = resolve(x.problem);
    const CudaTarget& target = context_->device().target;
    const auto candidates = worthwhile(gemm, target, 12, GetParam());
    if (candidates.empty()) return {};
    const auto& config = candidates[static_cast<size_t>(number) % candidates.size()].config;
    name_ = schedule::name_of(config);
    test::note_kind(fmt::format("emulated gemm sm_{} {} f32", target.sm, GetParam()));
    const KernelText kernel = make_kernel(gemm.desc, config, target);
    const runtime::CudaModule module(*context_, jit::compile_cubin(kernel.unit, target.architecture(), true).bytes);
    std::vector<float> d(static_cast<size_t>(x.problem.m * x.problem.n), -1);
    const auto size = [](size_t bytes) { return std::max<size_t>(bytes, 16); };
    runtime::CudaBuffer a(*context_, size(x.a.size() * 4)), b(*context_, size(x.b.size() * 4));
    runtime::CudaBuffer of_d(*context_, size(d.size() * 4));
    runtime::CudaBuffer workspace(*context_, size(static_cast<size_t>(kernel.workspace_bytes)));
    runtime::CudaBuffer counters(*context_, size(static_cast<size_t>(kernel.counter_bytes)));
    const std::vector<uint8_t> zeros(counters.size());
    a.write(x.a.data(), x.a.size() * 4);
    b.write(x.b.data(), x.b.size() * 4);
    of_d.write(d.data(), d.size() * 4);
    counters.write(zeros.data(), zeros.size());
    runtime::CudaSequence(*context_, module, kernel.launches,
                          {a.address(), b.address(), of_d.address(), workspace.address(), counters.address()})
        .enqueue();
    context_->synchronize();
    of_d.read(d.data(), d.size() * 4);
    return d;
  }

  // Every element of D within 2^-20 of the sum of its products' magnitudes, or of the same kind where ordinary f32 has
  // no number.
  void expect_product(const Matrices& x, int number = 0) {
    const std::vector<float> d = multiply(x, number);
    SCOPED_TRACE(name_);
    ASSERT_EQ(d.size(), static_cast<size_t>(x.problem.m * x.problem.n));
    size_t wrong = 0;
    for (int64_t row = 0; row < x.problem.m; ++row) {
      for (int64_t column = 0; column < x.problem.n; ++column) {
        double sum = 0, magnitude = 0;
        for (int64_t k = 0; k < x.problem.k; ++k) {
          const double p = static_cast<double>(x.a[static_cast<size_t>(row * x.problem.k + k)]) *
                           x.b[static_cast<size_t>(column * x.problem.k + k)];
          sum += p, magnitude += std::abs(p);
        }
        const float got = d[static_cast<size_t>(row * x.problem.n + column)];
        const auto expected = static_cast<float>(sum);
        const bool right = std::isnan(expected)   ? std::isnan(got)
                           : std::isinf(expected) ? got == expected
                                                  : std::abs(got - sum) <= 0x1p-20 * magnitude + kMin;
        if (!right && ++wrong <= 3) {
          ADD_FAILURE() << "row " << row << ", column " << column << ": " << got << " is not " << sum << " of "
                        << magnitude;
        }
      }
    }
    EXPECT_EQ(wrong, 0u);
  }

  std::shared_ptr<const runtime::CudaContext> context_ = runtime::CudaContext::of_device(0);
  std::string name_;

 private:
  static inline TempDir* cache_ = nullptr;
};

// An ordinary run gives all numbers of one size to the same kernel.
TEST_P(SplitF32, NumbersOfAnySize) {
  int number = 0;
  const int step = test::takes_all_instances() ? 1 : 0;
  for (const auto& [m, n, k] : {std::array<int64_t, 3>{130, 72, 96}, {64, 33, 257}, {17, 131, 40}, {1, 100, 1000}}) {
    expect_product(Matrices(m, n, k, normal), number);
    number += step;
    expect_product(Matrices(m, n, k, [](auto& random) { return std::abs(normal(random)); }), number);
    number += step;
    // Rows of 40 powers of two.
    expect_product(
        Matrices(m, n, k,
                 [](auto& random) { return std::ldexp(normal(random), static_cast<int>(random() % 41) - 20); }),
        number++);
  }
}

TEST_P(SplitF32, NaNAndInfinityAreSeenInTheirRowsAlone) {
  Matrices x(70, 72, 100, normal);
  x.at_a(3, 99) = kNaN;
  x.at_a(69, 0) = kInf;
  x.at_b(5, 50) = -kInf;
  x.at_b(6, 51) = kNaN;
  for (int64_t column = 0; column < 72; ++column) x.at_b(column, 0) = column % 3 == 0 ? 1 : column % 3 == 1 ? -2 : 0;
  for (int number = 0; number < 3; ++number) expect_product(x, number);
}

TEST_P(SplitF32, TheLargestNumbers) {
  Matrices x(40, 48, 64, normal);
  for (int64_t k = 0; k < 64; ++k) x.at_a(1, k) = k == 7 ? kMax : 0, x.at_a(2, k) = k == 7 ? -kMax : k == 9 ? kMax : 0;
  for (int64_t column = 0; column < 48; ++column) {
    x.at_b(column, 7) = column % 2 == 0 ? 1 : 0.5f;
    x.at_b(column, 9) = column % 2 == 0 ? 1 : 2;
  }
  for (int number = 0; number < 3; ++number) expect_product(x, number);
}

TEST_P(SplitF32, TheSmallestNumbers) {
  // Products of the smallest numbers with large ones; numbers without normal low parts.
  Matrices x(24, 32, 48, [](auto& random) { return std::ldexp(normal(random), 70); });
  for (float& v : x.a) v = std::ldexp(v, -70 - 135);
  for (int number = 0; number < 2; ++number) expect_product(x, number);
}

INSTANTIATE_TEST_SUITE_P(Families, SplitF32, testing::Values("wgmma", "cluster_splitk", "mma", "unaligned"));

}  // namespace
}  // namespace heddle::ops
