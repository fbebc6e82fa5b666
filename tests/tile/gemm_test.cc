#include "tile/kernel/cpu/gemm.h"

#include <cstring>

#include "testing.h"

namespace heddle::tile {
namespace {

using testing::Guarded;
using testing::to_double;

struct GemmProblem {
  int64_t batch, m, n, k;
  bool a_transposed, b_transposed, packed;
};

template <int MR>
GemmShape shape_of(const GemmProblem& p, int64_t block_tiles, int64_t block_panels) {
  GemmShape s;
  s.batch[3] = p.batch;
  s.m = p.m, s.n = p.n, s.k = p.k;
  s.tiles = (p.m + MR - 1) / MR;
  s.tall = p.m - s.tiles * (MR - 1);
  s.block_tiles = block_tiles, s.block_panels = block_panels;
  return s;
}

// Runs the kernel in two ranges of tasks and compares with a reference in double.
template <typename T, typename TA, typename TB, int MR, int NV, bool Direct>
void check(const GemmProblem& p, int64_t block_tiles, int64_t block_panels) {
  SCOPED_TRACE(::testing::Message() << p.batch << " x " << p.m << "x" << p.n << "x" << p.k << " ta " << p.a_transposed
                                    << " tb " << p.b_transposed << " packed " << p.packed << " MR " << MR);
  constexpr int NR = kPanel<T, NV>;
  std::mt19937 random(static_cast<unsigned>(p.m * 31 + p.n * 7 + p.k));
  Guarded<TA> a(p.batch * p.m * p.k);
  Guarded<TB> b(p.batch * p.k * p.n);
  Guarded<T> c(p.batch * p.m * p.n);
  testing::fill(a, random);
  testing::fill(b, random);
  const Strided<TA> at{a.data(), {0, 0, 0, p.m * p.k}, p.a_transposed ? 1 : p.k, p.a_transposed ? p.m : 1};
  const Strided<TB> bt{b.data(), {0, 0, 0, p.k * p.n}, p.b_transposed ? 1 : p.n, p.b_transposed ? p.k : 1};
  const GemmShape s = shape_of<MR>(p, block_tiles, block_panels);
  std::vector<int> writes(static_cast<size_t>(c.size()));
  const testing::StoreAll<T> epilogue{c.data(), writes.data(), p.m * p.n, p.n};
  const auto run = [&](const auto& fa, const auto& fb) {
    using A = std::remove_cvref_t<decltype(fa)>;
    using B = std::remove_cvref_t<decltype(fb)>;
    const testing::Scratch scratch(s.scratch_bytes(MR, NR, sizeof(T), A::kCopies, B::kCopies));
    const int64_t tasks = s.tasks(NR);
    constexpr bool narrow = NV > 1 && MR <= 3;  // some of the problems, with and without a last panel that is
    constexpr auto wide = micro_kernels<T, typename B::element, MR, NV>();
    constexpr auto micro = narrow ? with_narrow(wide, micro_kernels<T, typename B::element, MR, 1>()) : wide;
    gemm<NV, narrow>(micro, s, fa, fb, epilogue, scratch, 0, tasks / 2);
    gemm<NV, narrow>(micro, s, fa, fb, epilogue, scratch, tasks / 2, tasks);
    const testing::Scratch larger(s.scratch_bytes(MR, NR, sizeof(T), A::kCopies, B::kCopies, true));
    Guarded<T> columns(c.size());
    gemm<NV, narrow>(micro, s, fa, fb, testing::StoreColumns<T>{columns.data(), p.m * p.n, p.m}, larger, 0, tasks);
    EXPECT_TRUE(columns.intact());
    for (int64_t i = 0; i < c.size(); ++i) {
      const int64_t g = i / (p.m * p.n), row = i / p.n % p.m, col = i % p.n;
      ASSERT_EQ(to_double(columns[g * p.m * p.n + col * p.m + row]), to_double(c[i])) << "element " << i;
    }
  };
  using A = std::conditional_t<Direct, DirectA<T>, CopiedA<T, TA>>;
  const A fa{at};
  if (p.packed) {
    const PanelSource source{p.batch, p.k * p.n, 1, 0, p.k, bt.row, p.n, bt.col};
    Guarded<TB> packed(packed_elements(source, NR));
    pack_panels(packed.data(), b.data(), source, NR, [](TB x) { return x; });
    EXPECT_TRUE(packed.intact());
    run(fa, PackedB<T, TB>{packed.data(), {0, 0, 0, packed.size() / std::max<int64_t>(p.batch, 1)}});
  } else {
    run(fa, StridedB<T, TB>{bt});
  }
  EXPECT_TRUE(c.intact());
  const double epsilon = std::is_integral_v<T> ? 0 : sizeof(T) == 4 ? 1e-6 : 1e-15;
  for (int64_t i = 0; i < p.batch * p.m * p.n; ++i) {
    const int64_t g = i / (p.m * p.n), row = i / p.n % p.m, col = i % p.n;
    double want = 0, magnitude = 0;
    for (int64_t k = 0; k < p.k; ++k) {
      const double product = to_double(a[g * p.m * p.k + row * at.row + k * at.col]) *
                             to_double(b[g * p.k * p.n + k * bt.row + col * bt.col]);
      want += product, magnitude += std::fabs(product);
    }
    ASSERT_EQ(writes[static_cast<size_t>(i)], 1) << "element " << i;
    ASSERT_NEAR(to_double(c[i]), want, epsilon * (magnitude + 1)) << "element " << i;
  }
}

const int64_t kSizes[][3] = {{0, 5, 3},  {5, 0, 3},    {4, 3, 0},    {1, 1, 1},     {1, 33, 7},   {2, 5, 64},
                             {3, 17, 1}, {13, 31, 29}, {15, 64, 40}, {29, 67, 130}, {41, 16, 512}};

template <typename T, typename TA, typename TB, int MR, int NV = 2>
void check_all() {
  for (const auto& [rows, n, k] : kSizes) {
    const int64_t m = std::max(rows, (rows + MR - 1) / MR * (MR - 1));  // what tiles of MR and MR - 1 rows can make
    check<T, TA, TB, MR, NV, false>({1, m, n, k, false, false, true}, 2, 1);
    check<T, TA, TB, MR, NV, false>({3, m, n, k, true, true, false}, 1, 2);
    check<T, TA, TB, MR, NV, false>({2, m, n, k, true, false, false}, 100, 100);
  }
}

TEST(Gemm, FloatAgreesWithDouble) {
  check_all<float, float, float, kMicroRows>();
  check_all<float, float, float, 5, 1>();
  check_all<float, float, float, 1>();
}
TEST(Gemm, ReadsAInPlace) {
  for (const auto& [m, n, k] : kSizes) {
    check<float, float, float, 2, 2, true>({2, m, n, k, false, true, true}, 2, 1);
    check<float, float, float, 2, 2, true>({2, m, n, k, false, false, false}, 1, 2);
  }
}
TEST(Gemm, NarrowFloatsAreWidened) {
  check_all<float, half, half, 3>();
  check_all<float, bfloat, bfloat, 3>();
  check_all<float, float, bfloat, 3>();
}
TEST(Gemm, Double) {
  check_all<double, double, double, 5>();
}
TEST(Gemm, Integers) {
  check_all<int32_t, int8_t, int8_t, 4>();
  check_all<int32_t, uint8_t, int8_t, 4>();
  check_all<int64_t, int64_t, int64_t, 2>();
}

struct Doubled {
  const float* a;
  int64_t k;
  template <int W, typename N>
  vec<float, W> operator()(int64_t, int64_t row, int64_t at, N n) const {
    return load_n<W>(a + row * k + at, n) * 2.f;
  }
};

TEST(Gemm, MicroKernelsAreChosenByTheirHeight) {
  constexpr auto four = micro_kernels<float, float, 4, 1>(), two = micro_kernels<float, float, 2, 1>();
  EXPECT_EQ(&of_height(4, four, two), &four);
  EXPECT_EQ(&of_height(2, four, two), &two);
}

TEST(Gemm, PrologueComputesA) {
  constexpr int64_t m = 19, n = 21, k = 37;
  constexpr int MR = 5, NR = kPanel<float>;
  std::mt19937 random(1);
  Guarded<float> a(m * k), b(k * n), c(m * n);
  testing::fill(a, random);
  testing::fill(b, random);
  GemmShape s = shape_of<MR>({1, m, n, k, false, false, false}, 2, 1);
  std::vector<int> writes(m * n);
  using A = ComputedA<float, Doubled>;
  using B = StridedB<float, float>;
  const testing::Scratch scratch(s.scratch_bytes(MR, NR, 4, A::kCopies, B::kCopies));
  gemm<2>(micro_kernels<float, float, MR, 2>(), s, A{{a.data(), k}}, B{{b.data(), {0, 0, 0, 0}, n, 1}},
          testing::StoreAll<float>{c.data(), writes.data(), 0, n}, scratch, 0, s.tasks(NR));
  EXPECT_TRUE(c.intact());
  for (int64_t i = 0; i < m * n; ++i) {
    double want = 0;
    for (int64_t j = 0; j < k; ++j) want += 2.0 * a[i / n * k + j] * b[j * n + i % n];
    ASSERT_NEAR(c[i], want, 1e-4);
  }
}

TEST(Gemm, BatchStridesMayBeZeroOrPermuted) {
  // Batch dimensions (2, 3); A is shared along the first, B has them swapped in memory.
  constexpr int64_t m = 7, n = 9, k = 11;
  constexpr int MR = 4, NR = kPanel<float>;
  std::mt19937 random(2);
  Guarded<float> a(3 * m * k), b(6 * k * n), c(6 * m * n);
  testing::fill(a, random);
  testing::fill(b, random);
  GemmShape s = shape_of<MR>({3, m, n, k, false, false, false}, 1, 1);
  s.batch[2] = 2;
  std::vector<int> writes(6 * m * n);
  using A = DirectA<float>;
  using B = StridedB<float, float>;
  const testing::Scratch scratch(s.scratch_bytes(MR, NR, 4, A::kCopies, B::kCopies));
  gemm<2>(micro_kernels<float, float, MR, 2>(), s, A{{a.data(), {0, 0, 0, m * k}, k, 1}},
          B{{b.data(), {0, 0, k * n, 2 * k * n}, n, 1}}, testing::StoreAll<float>{c.data(), writes.data(), m * n, n},
          scratch, 0, s.tasks(NR));
  for (int64_t i = 0; i < c.size(); ++i) {
    const int64_t g = i / (m * n), row = i / n % m, col = i % n;
    double want = 0;
    for (int64_t j = 0; j < k; ++j)
      want += static_cast<double>(a[g % 3 * m * k + row * k + j]) * b[(g % 3 * 2 + g / 3) * k * n + j * n + col];
    ASSERT_NEAR(c[i], want, 1e-4);
  }
}

}  // namespace
}  // namespace heddle::tile
