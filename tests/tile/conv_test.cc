#include "tile/kernel/cpu/conv.h"

#include <cstring>

#include "testing.h"
#include "tile/kernel/cpu/window_rows.h"
#include "tile/kernel/cpu/winograd.h"

namespace heddle::tile {
namespace {

using testing::Guarded;
using testing::to_double;

struct Dim {
  int64_t in, kernel, stride = 1, dilation = 1, low = 0, high = 0, lhs = 1;

  int64_t out() const {
    const int64_t extent = (in - 1) * lhs + 1 + low + high - ((kernel - 1) * dilation + 1);
    return extent < 0 ? 0 : extent / stride + 1;
  }
  // Index in the stored input of tap k of output o; -1 outside or between dilated elements.
  int64_t source(int64_t o, int64_t k) const {
    const int64_t at = o * stride + k * dilation - low;
    if (at < 0 || at % lhs != 0) return -1;
    return at / lhs < in ? at / lhs : -1;
  }
};

struct Problem {
  int64_t batch, groups, c, o;  // c and o of one group
  Dim dims[3];
};

template <typename Shape>
void set_dims(Shape& s, const Problem& p) {
  s.batch = p.batch;
  for (int d = 0; d < 3; ++d) {
    s.in[d] = p.dims[d].in, s.out[d] = p.dims[d].out(), s.kernel[d] = p.dims[d].kernel;
    s.stride[d] = p.dims[d].stride, s.dilation[d] = p.dims[d].dilation, s.low[d] = p.dims[d].low;
  }
}

// Calls f(input position, tap) for each tap of an output that lies inside the input.
template <typename F>
void each_tap(const Problem& p, int64_t pixel, F f) {
  const int64_t ow = pixel % p.dims[2].out(), oh = pixel / p.dims[2].out() % p.dims[1].out(),
                od = pixel / p.dims[2].out() / p.dims[1].out();
  for (int64_t kd = 0; kd < p.dims[0].kernel; ++kd) {
    for (int64_t ky = 0; ky < p.dims[1].kernel; ++ky) {
      for (int64_t kx = 0; kx < p.dims[2].kernel; ++kx) {
        const int64_t d = p.dims[0].source(od, kd), y = p.dims[1].source(oh, ky), x = p.dims[2].source(ow, kx);
        if (d < 0 || y < 0 || x < 0) continue;
        f((d * p.dims[1].in + y) * p.dims[2].in + x, (kd * p.dims[1].kernel + ky) * p.dims[2].kernel + kx);
      }
    }
  }
}

// A box of the window for each panel, some of them empty; filters become zero outside.
template <typename TW>
std::vector<ConvTaps> random_taps(const ConvShape& s, int64_t width, std::mt19937& random, Guarded<TW>& filters) {
  std::vector<ConvTaps> boxes(static_cast<size_t>(s.groups * s.panels(width)));
  for (ConvTaps& box : boxes) {
    for (int d = 0; d < 3; ++d) {
      box.first[d] = static_cast<int32_t>(random() % static_cast<unsigned>(s.kernel[d]));
      box.end[d] =
          box.first[d] + static_cast<int32_t>(random() % static_cast<unsigned>(s.kernel[d] - box.first[d] + 1));
    }
  }
  for (int64_t i = 0; i < filters.size(); ++i) {
    const int64_t o = i / s.k(), tap = i % s.taps();
    const ConvTaps& box = boxes[static_cast<size_t>(o / s.o * s.panels(width) + o % s.o / width)];
    const int64_t at[3] = {tap / s.kernel[2] / s.kernel[1], tap / s.kernel[2] % s.kernel[1], tap % s.kernel[2]};
    for (int d = 0; d < 3; ++d) {
      if (at[d] < box.first[d] || at[d] >= box.end[d]) filters[i] = testing::from_double<TW>(0);
    }
  }
  return boxes;
}

template <typename T, typename TX, typename TW, int MR, int NV, bool Direct = false>
void check_conv(const Problem& p, int64_t block_rows, int64_t block_panels, bool leaves_out = false) {
  SCOPED_TRACE(::testing::Message() << "batch " << p.batch << " groups " << p.groups << " " << p.c << "->" << p.o
                                    << " in " << p.dims[0].in << "x" << p.dims[1].in << "x" << p.dims[2].in
                                    << " kernel " << p.dims[1].kernel << "x" << p.dims[2].kernel << " MR " << MR);
  constexpr int NR = kPanel<T, NV>;
  ConvShape s;
  set_dims(s, p);
  for (int d = 0; d < 3; ++d) s.lhs_dilation[d] = p.dims[d].lhs;
  s.groups = p.groups, s.c = p.c, s.o = p.o;
  s.tiles = (s.out[2] + MR - 1) / MR, s.tall = s.out[2] - s.tiles * (MR - 1);
  ASSERT_GE(s.tall, 0) << "the test gives a width that tiles of " << MR << " cannot make";
  s.block_rows = block_rows, s.block_panels = block_panels;
  const int64_t taps = s.kernel[0] * s.kernel[1] * s.kernel[2], pixels = s.out[0] * s.out[1] * s.out[2];
  const int64_t in_pixels = s.in[0] * s.in[1] * s.in[2], channels = p.groups * p.c, filters = p.groups * p.o;
  std::mt19937 random(static_cast<unsigned>(pixels + channels));
  Guarded<TX> x(p.batch * in_pixels * channels);
  Guarded<TW> w(filters * p.c * taps);
  Guarded<T> y(p.batch * pixels * filters);
  testing::fill(x, random);
  testing::fill(w, random);
  std::vector<ConvTaps> boxes;
  if (leaves_out) boxes = random_taps(s, NR, random, w);
  const ConvTaps* const of_panels = leaves_out ? boxes.data() : nullptr;
  const PanelSource source{p.groups, p.o * p.c * taps, taps, 1, p.c, taps, p.o, p.c * taps};
  Guarded<TW> packed(packed_elements(source, NR));
  pack_panels(packed.data(), w.data(), source, NR, [](TW v) { return v; });
  std::vector<int> writes(static_cast<size_t>(y.size()));
  const testing::StoreAll<T> epilogue{y.data(), writes.data(), pixels * filters, filters};
  using X = std::conditional_t<Direct, DirectX<TX>, CopiedX<T, TX>>;
  const testing::Scratch scratch(s.scratch_bytes(MR, NR, sizeof(T), X::kCopies));
  const int64_t tasks = s.tasks(NR);
  X image;
  if constexpr (Direct) {
    image = {x.data()};
  } else {
    image = X::dense(x.data(), s);
  }
  constexpr auto micro = micro_kernels<T, TW, MR, NV>();
  conv<NV>(micro, s, image, packed.data(), epilogue, scratch, 0, tasks / 3, of_panels);
  conv<NV>(micro, s, image, packed.data(), epilogue, scratch, tasks / 3, tasks, of_panels);
  EXPECT_TRUE(y.intact());
  const testing::Scratch larger(s.scratch_bytes(MR, NR, sizeof(T), X::kCopies, true));
  Guarded<T> planes(y.size());
  const testing::StoreColumns<T> by_channels{planes.data(), pixels * filters, pixels};
  conv<NV>(micro, s, image, packed.data(), by_channels, larger, 0, tasks, of_panels);
  EXPECT_TRUE(planes.intact());
  for (int64_t i = 0; i < y.size(); ++i) {
    const int64_t n = i / (pixels * filters), pixel = i / filters % pixels, o = i % filters, g = o / p.o;
    double want = 0;
    each_tap(p, pixel, [&](int64_t at, int64_t tap) {
      for (int64_t c = 0; c < p.c; ++c)
        want += to_double(x[(n * in_pixels + at) * channels + g * p.c + c]) * to_double(w[(o * p.c + c) * taps + tap]);
    });
    ASSERT_EQ(writes[static_cast<size_t>(i)], 1) << "element " << i;
    ASSERT_NEAR(to_double(y[i]), want, std::is_integral_v<T> ? 0 : 1e-4) << "element " << i;
    ASSERT_EQ(to_double(planes[(n * filters + o) * pixels + pixel]), to_double(y[i])) << "element " << i;
  }
}

constexpr Dim kNone{1, 1};
const Problem kProblems[] = {
    {1, 1, 3, 8, {kNone, {9, 3, 2, 1, 1, 1}, {11, 3, 2, 1, 1, 1}}},
    {2, 1, 17, 33, {kNone, {7, 3, 1, 1, 1, 1}, {7, 3, 1, 1, 1, 1}}},
    {1, 3, 5, 7, {kNone, {6, 3, 1, 2, 2, 1}, {13, 2, 3, 2, 0, 3}}},
    {1, 1, 4, 40, {kNone, kNone, {29, 5, 1, 1, 2, 2}}},
    {1, 1, 6, 5, {{5, 3, 1, 1, 1, 1}, {6, 2, 2}, {7, 3, 1, 1, 1, 0}}},
    {1, 2, 3, 4, {kNone, {4, 3, 1, 1, 2, 2, 2}, {5, 4, 1, 1, 3, 3, 3}}},
    {1, 1, 8, 9, {kNone, {8, 3, 1, 1, -1, -2}, {9, 1, 2, 1, -1, 0}}},
    {1, 1, 512, 4, {kNone, {3, 1}, {5, 3, 1, 1, 1, 1}}},
    {0, 1, 3, 4, {kNone, {3, 1}, {5, 3}}},
    {1, 1, 5, 9, {kNone, {13, 3, 1, 5, 5, 5}, {11, 3, 1, 4, 4, 4}}},
    {1, 2, 3, 4, {{4, 2, 1, 2, 0, 1}, {12, 3, 2, 6, 3, 4}, {6, 2, 1, 2}}},
};

TEST(Conv, AgreesWithDoubleForAnyWindow) {
  for (const Problem& p : kProblems) {
    check_conv<float, float, float, 2, 2>(p, 2, 1);
    check_conv<float, float, float, 3, 1>(p, 100, 100);
  }
  constexpr Dim wide{2 * kMicroRows - 1, 3, 1, 1, 1, 1};
  check_conv<float, float, float, kMicroRows, 2>({2, 1, 19, 70, {kNone, {5, 3, 1, 1, 1, 1}, wide}}, 2, 2);
}
TEST(Conv, LeavesOutTapsOutsideOfThePanelsBoxes) {
  for (const Problem& p : kProblems) {
    check_conv<float, float, float, 2, 2>(p, 2, 1, true);
    check_conv<float, half, bfloat, 3, 1>(p, 100, 100, true);
  }
  // Groups that are read in place: the pixels of a window's line lie apart.
  check_conv<float, float, float, 3, 1, true>({1, 2, 6, 37, {{3, 2}, {9, 3, 2}, {12, 3, 2}}}, 3, 1, true);
}
TEST(Conv, NarrowFloats) {
  for (const Problem& p : kProblems) {
    check_conv<float, half, bfloat, 3, 1>(p, 3, 2);
  }
}
TEST(Conv, Integers) {
  for (const Problem& p : kProblems) check_conv<int32_t, uint8_t, int8_t, 2, 1>(p, 3, 2);
}
TEST(Conv, ReadsUnpaddedInputInPlace) {
  check_conv<float, float, float, 3, 2, true>({2, 1, 6, 35, {kNone, {9, 3, 2}, {12, 3, 1, 2}}}, 2, 1);
  check_conv<float, float, float, 3, 2, true>({1, 2, 6, 5, {{3, 2}, {9, 1, 2}, {12, 2, 2}}}, 3, 1);
  check_conv<float, float, float, 3, 2, true>({1, 1, 6, 5, {kNone, {9, 2, 1, 1, -1, -1}, {12, 2, 2, 1, -2, 0}}}, 3, 1);
}

template <typename TX, int BlockTiles, int NV>
void check_winograd(const Problem& p, int64_t block_panels) {
  SCOPED_TRACE(::testing::Message() << p.c << "->" << p.o << " in " << p.dims[1].in << "x" << p.dims[2].in);
  constexpr RowSplit rows = split_rows(BlockTiles, kMicroRows);
  constexpr int NR = kPanel<float, NV>;
  WinogradShape s;
  s.batch = p.batch, s.c = p.c, s.o = p.o;
  for (int d = 0; d < 2; ++d) {
    s.in[d] = p.dims[d + 1].in, s.out[d] = p.dims[d + 1].out(), s.low[d] = p.dims[d + 1].low;
    s.dilation[d] = p.dims[d + 1].dilation;
  }
  s.block_tiles = BlockTiles, s.row_tiles = rows.tiles, s.tall = rows.tall, s.block_panels = block_panels;
  const int64_t in_pixels = s.in[0] * s.in[1], pixels = s.out[0] * s.out[1];
  std::mt19937 random(11);
  Guarded<TX> x(p.batch * in_pixels * p.c);
  Guarded<float> w(p.o * p.c * 9), y(p.batch * pixels * p.o);
  Guarded<float> packed(panel_count(p.o, NR) * kWinogradPoints * p.c * NR);
  testing::fill(x, random);
  testing::fill(w, random);
  pack_winograd(packed.data(), w.data(), p.o, p.c, NR, [](float v) { return static_cast<double>(v); });
  EXPECT_TRUE(packed.intact());
  std::vector<int> writes(static_cast<size_t>(y.size()));
  const testing::StoreAll<float> epilogue{y.data(), writes.data(), pixels * p.o, p.o};
  const testing::Scratch scratch(s.scratch_bytes(NR));
  const int64_t tasks = s.tasks(NR);
  constexpr auto micro = micro_kernels<float, float, int(rows.mr), NV>();
  winograd<NV>(micro, s, x.data(), packed.data(), epilogue, scratch, 0, tasks / 2);
  winograd<NV>(micro, s, x.data(), packed.data(), epilogue, scratch, tasks / 2, tasks);
  EXPECT_TRUE(y.intact());
  for (int64_t i = 0; i < y.size(); ++i) {
    const int64_t n = i / (pixels * p.o), pixel = i / p.o % pixels, o = i % p.o;
    double want = 0;
    each_tap(p, pixel, [&](int64_t at, int64_t tap) {
      for (int64_t c = 0; c < p.c; ++c)
        want += to_double(x[(n * in_pixels + at) * p.c + c]) * static_cast<double>(w[(o * p.c + c) * 9 + tap]);
    });
    ASSERT_EQ(writes[static_cast<size_t>(i)], 1) << "element " << i;
    ASSERT_NEAR(static_cast<double>(y[i]), want, 2e-5) << "element " << i;
  }
}

TEST(Conv, WinogradAgreesWithDouble) {
  const Problem problems[] = {
      {2, 1, 19, 37, {kNone, {13, 3, 1, 1, 1, 1}, {10, 3, 1, 1, 1, 1}}},
      {1, 1, 8, 8, {kNone, {3, 3}, {9, 3, 1, 1, 2, 3}}},
      {1, 1, 33, 70, {kNone, {9, 3, 1, 1, 0, 2}, {6, 3, 1, 1, -1, 0}}},
      {0, 1, 8, 8, {kNone, {8, 3}, {8, 3}}},
      {2, 1, 9, 11, {kNone, {23, 3, 1, 3, 3, 3}, {14, 3, 1, 2, 1, 2}}},
      {1, 1, 8, 8, {kNone, {5, 3, 1, 9, 9, 9}, {17, 3, 1, 4, 4, 5}}},
  };
  for (const Problem& p : problems) {
    check_winograd<float, 5, 2>(p, 1);
    check_winograd<half, 2 * kMicroRows - 1, 1>(p, 2);
  }
}

// The image has elements from [first, first + 255], which exercise the ends of what 16 bits hold.
template <typename TX, typename TW, int BlockTiles, int NV>
void check_integer_winograd(const Problem& p, int first, int most, int64_t block_panels) {
  SCOPED_TRACE(::testing::Message() << p.c << "->" << p.o << " in " << p.dims[1].in << "x" << p.dims[2].in);
  constexpr RowSplit rows = split_rows(BlockTiles, kMicroRows);
  constexpr int NR = kPanel<int32_t, NV>;
  WinogradShape s;
  s.batch = p.batch, s.c = p.c, s.o = p.o, s.elements = 2;
  for (int d = 0; d < 2; ++d) {
    s.in[d] = p.dims[d + 1].in, s.out[d] = p.dims[d + 1].out(), s.low[d] = p.dims[d + 1].low;
    s.dilation[d] = p.dims[d + 1].dilation;
  }
  s.block_tiles = BlockTiles, s.row_tiles = rows.tiles, s.tall = rows.tall, s.block_panels = block_panels;
  const int64_t in_pixels = s.in[0] * s.in[1], pixels = s.out[0] * s.out[1];
  std::mt19937 random(12);
  Guarded<TX> x(p.batch * in_pixels * p.c);
  Guarded<TW> w(p.o * p.c * 9);
  Guarded<int32_t> y(p.batch * pixels * p.o);
  Guarded<int16_t> packed(2 * panel_count(p.o, NR) * kWinogradPoints * s.words() * NR);
  const auto draw = [&](int low, int high) {
    const auto kind = random() % 4;
    return kind == 0   ? low
           : kind == 1 ? high
                       : low + static_cast<int>(random() % static_cast<uint32_t>(high - low + 1));
  };
  for (int64_t i = 0; i < x.size(); ++i) x[i] = static_cast<TX>(draw(first, first + 255));
  for (int64_t i = 0; i < w.size(); ++i) w[i] = static_cast<TW>(draw(-most, most));
  pack_winograd(packed.data(), w.data(), p.o, p.c, NR);
  EXPECT_TRUE(packed.intact());
  std::vector<int> writes(static_cast<size_t>(y.size()));
  const testing::StoreAll<int32_t> epilogue{y.data(), writes.data(), pixels * p.o, p.o};
  const testing::Scratch scratch(s.scratch_bytes(NR));
  const int64_t tasks = s.tasks(NR);
  constexpr auto micro = micro_kernels<int32_t, short_pair, int(rows.mr), NV>();
  const auto* words = reinterpret_cast<const short_pair*>(packed.data());
  winograd<NV>(micro, s, x.data(), words, epilogue, scratch, 0, tasks / 2);
  winograd<NV>(micro, s, x.data(), words, epilogue, scratch, tasks / 2, tasks);
  EXPECT_TRUE(y.intact());
  for (int64_t i = 0; i < y.size(); ++i) {
    const int64_t n = i / (pixels * p.o), pixel = i / p.o % pixels, o = i % p.o;
    int64_t want = 0;
    each_tap(p, pixel, [&](int64_t at, int64_t tap) {
      for (int64_t c = 0; c < p.c; ++c) {
        want += int64_t{x[(n * in_pixels + at) * p.c + c]} * w[(o * p.c + c) * 9 + tap];
      }
    });
    ASSERT_EQ(writes[static_cast<size_t>(i)], 1) << "element " << i;
    ASSERT_EQ(y[i], want) << "element " << i;
  }
}

TEST(Conv, IntegerWinogradIsExact) {
  const Problem problems[] = {
      {2, 1, 19, 37, {kNone, {13, 3, 1, 1, 1, 1}, {10, 3, 1, 1, 1, 1}}},
      {1, 1, 8, 8, {kNone, {3, 3}, {9, 3, 1, 1, 2, 3}}},
      {1, 1, 65, 70, {kNone, {9, 3, 1, 1, 0, 2}, {6, 3, 1, 1, -1, 0}}},
      {2, 1, 9, 11, {kNone, {23, 3, 1, 3, 3, 3}, {14, 3, 1, 2, 1, 2}}},
  };
  for (const Problem& p : problems) {
    check_integer_winograd<uint8_t, int8_t, 5, 2>(p, 0, 127, 1);
    check_integer_winograd<int8_t, int8_t, 7, 1>(p, -128, 127, 2);
    check_integer_winograd<int16_t, int16_t, 2 * kMicroRows - 1, 1>(p, -200, 200, 2);
  }
  check_integer_winograd<int16_t, int16_t, 5, 2>(problems[1], -255, int(kWinogradFilter), 1);
}

template <typename T>
void check_window(const Problem& p) {
  SCOPED_TRACE(::testing::Message() << "channels " << p.c << " in " << p.dims[0].in << "x" << p.dims[1].in << "x"
                                    << p.dims[2].in);
  using C = compute_t<T>;
  WindowShape s;
  set_dims(s, p);
  s.c = p.c;
  const int64_t taps = s.kernel[0] * s.kernel[1] * s.kernel[2], pixels = s.out[0] * s.out[1] * s.out[2];
  const int64_t in_pixels = s.in[0] * s.in[1] * s.in[2];
  std::mt19937 random(5);
  Guarded<T> x(p.batch * in_pixels * p.c);
  Guarded<C> w(taps * p.c);
  testing::fill(x, random);
  testing::fill(w, random);
  const auto check = [&](const auto& op, double start, auto fold, bool rows) {
    Guarded<C> y(p.batch * pixels * p.c);
    std::vector<int> writes(static_cast<size_t>(y.size()));
    const testing::StoreAll<C> epilogue{y.data(), writes.data(), pixels * p.c, rows ? s.out[2] * p.c : p.c};
    if constexpr (std::is_empty_v<std::decay_t<decltype(op)>>) {
      Guarded<char> scratch(rows ? s.scratch_bytes(sizeof(C)) : 0);
      if (rows) {
        window_rows(s, x.data(), op, epilogue, scratch.data(), 0, s.tasks() / 2);
        window_rows(s, x.data(), op, epilogue, scratch.data(), s.tasks() / 2, s.tasks());
      }
      EXPECT_TRUE(scratch.intact());
    }
    if (!rows) {
      window(s, x.data(), op, epilogue, 0, s.tasks() / 2);
      window(s, x.data(), op, epilogue, s.tasks() / 2, s.tasks());
    }
    EXPECT_TRUE(y.intact());
    for (int64_t i = 0; i < y.size(); ++i) {
      const int64_t n = i / (pixels * p.c), pixel = i / p.c % pixels, c = i % p.c;
      double want = start;
      each_tap(p, pixel, [&](int64_t at, int64_t tap) {
        want = fold(want, to_double(x[(n * in_pixels + at) * p.c + c]), to_double(w[tap * p.c + c]));
      });
      ASSERT_EQ(writes[static_cast<size_t>(i)], 1);
      if (std::isinf(want)) {
        ASSERT_EQ(to_double(y[i]), want);
      } else {
        ASSERT_NEAR(to_double(y[i]), want, 1e-5) << "element " << i;
      }
    }
  };
  const double inf = std::is_integral_v<T> ? to_double(highest<C>()) : INFINITY;
  const double minus_inf = std::is_integral_v<T> ? to_double(lowest<C>()) : -INFINITY;
  check(
      DepthwiseOp<C>{w.data(), p.c}, 0, [](double a, double v, double f) { return a + v * f; }, false);
  const auto larger = [](double a, double v, double) { return std::max(a, v); };
  const auto smaller = [](double a, double v, double) { return std::min(a, v); };
  const auto sum = [](double a, double v, double) { return a + v; };
  for (const bool rows : {false, true}) {
    check(PoolOp<WindowKind::kSum, C>{}, 0, sum, rows);
    check(PoolOp<WindowKind::kSum, C, true>{}, 0, sum, rows);
    check(PoolOp<WindowKind::kMax, C>{}, minus_inf, larger, rows);
    check(PoolOp<WindowKind::kMin, C>{}, inf, smaller, rows);
  }
}

TEST(Window, DepthwiseAndPoolingAgreeWithDouble) {
  const Problem problems[] = {
      {2, 1, 37, 0, {kNone, {9, 3, 1, 1, 1, 1}, {19, 3, 1, 1, 1, 1}}},
      {1, 1, 16, 0, {kNone, {9, 3, 2, 1, 1, 1}, {20, 5, 2, 1, 2, 2}}},
      {1, 1, 5, 0, {{4, 2, 1, 1, 1, 0}, {7, 3, 3, 2, 0, 2}, {15, 2, 1, 3, 4, 5}}},
      {1, 1, 3, 0, {kNone, {3, 3, 1, 1, 4, 4}, {2, 2, 1, 1, 3, 3}}},
      {1, 1, 64, 0, {kNone, {7, 7}, {7, 7}}},
      {1, 1, 1, 0, {kNone, kNone, {50, 3, 2, 1, 1, 0}}},
      {3, 1, 1, 0, {{3, 2}, {6, 4, 1, 1, 2, 1}, {37, 6, 1, 1, 3, 2}}},
      {1, 1, 1, 0, {kNone, kNone, {5000, 140, 3, 2, 70, 70}}},
      {1, 1, 3, 0, {kNone, {2, 1}, {3000, 5, 4, 3, 1, 20}}},
      {1, 1, 40, 0, {kNone, {4, 2, 2}, {300, 3, 1, 1, 1, 1}}},
      {1, 1, 1, 0, {kNone, {3, 1, 3, 1, 2, 2}, {4, 2, 5, 1, 7, 9}}},
  };
  for (const Problem& p : problems) {
    check_window<float>(p);
    check_window<half>(p);
    check_window<double>(p);
    check_window<int32_t>(p);
  }
}

// A NaN is in the result of each window that holds it, whichever way windows are folded.
TEST(Window, NanSpreadsToItsWindows) {
  const Problem p = {1, 1, 1, 0, {kNone, {7, 3, 1, 1, 1, 1}, {21, 5, 1, 1, 2, 2}}};
  WindowShape s;
  set_dims(s, p);
  s.c = 1;
  std::vector<float> x(7 * 21, -1.0f), y(x.size());
  constexpr int64_t kRow = 3, kColumn = 8;
  x[kRow * 21 + kColumn] = NAN;
  std::vector<int> writes(y.size());
  std::vector<char> scratch(static_cast<size_t>(s.scratch_bytes(sizeof(float))));
  const auto check = [&](const auto& run, int64_t columns) {
    run(testing::StoreAll<float>{y.data(), writes.data(), 7 * 21, columns});
    for (int64_t i = 0; i < 7 * 21; ++i) {
      const bool holds = std::abs(i / 21 - kRow) <= 1 && std::abs(i % 21 - kColumn) <= 2;
      EXPECT_EQ(std::isnan(y[static_cast<size_t>(i)]), holds) << "element " << i;
    }
  };
  const PoolOp<WindowKind::kMax, float> op;
  check([&](const auto& epilogue) { window(s, x.data(), op, epilogue, 0, s.tasks()); }, 1);
  check([&](const auto& epilogue) { window_rows(s, x.data(), op, epilogue, scratch.data(), 0, s.tasks()); }, 21);
}

}  // namespace
}  // namespace heddle::tile
