#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "testing.h"
#include "tile/kernel/cpu/words.h"
#include "tile/op/arith.h"
#include "tile/op/gather.h"
#include "tile/op/narrow.h"

namespace heddle::tile {
namespace {

using testing::Guarded;

template <typename T, int W>
void check_partial_access() {
  Guarded<T> in(W), out(W);
  std::mt19937 random(7);
  testing::fill(in, random);
  for (int64_t n = 0; n <= W; ++n) {
    const vec<T, W> v = load_n<W>(in.data(), n);
    for (int i = 0; i < W; ++i) EXPECT_EQ(v[i], i < n ? in[i] : T(0)) << W << " lanes, first " << n;
    Guarded<T> target(n);
    store_n(target.data(), v, n);
    EXPECT_TRUE(target.intact()) << W << " lanes, first " << n;
    for (int64_t i = 0; i < n; ++i) EXPECT_EQ(target[i], in[i]);
  }
}

template <typename T>
void check_partial_access_all_widths() {
  check_partial_access<T, 1>();
  check_partial_access<T, 4>();
  check_partial_access<T, 8>();
  check_partial_access<T, 16>();
  check_partial_access<T, 32>();
}

TEST(Vec, PartialAccessTouchesOnlyItsLanes) {
  check_partial_access_all_widths<float>();
  check_partial_access_all_widths<double>();
  check_partial_access_all_widths<int64_t>();
  check_partial_access_all_widths<uint8_t>();
  check_partial_access_all_widths<int16_t>();
}

template <int W>
void check_operators() {
  std::mt19937 random(W);
  Guarded<int32_t> a(W), b(W);
  for (int i = 0; i < W; ++i) {
    a[i] = static_cast<int32_t>(random());
    b[i] = i % 3 == 0 ? 0 : i % 5 == 1 ? -1 : static_cast<int32_t>(random()) >> (i % 32);
  }
  a[0] = INT32_MIN;
  const auto va = load<W>(a.data()), vb = load<W>(b.data());
  const auto sum = va + vb, product = va * vb, quotient = va / vb, remainder = mod(va, vb);
  for (int i = 0; i < W; ++i) {
    const int64_t x = a[i], y = b[i];
    EXPECT_EQ(sum[i], static_cast<int32_t>(static_cast<uint32_t>(x + y)));
    EXPECT_EQ(product[i], static_cast<int32_t>(static_cast<uint32_t>(x * y)));
    EXPECT_EQ(quotient[i], y == 0 ? 0 : static_cast<int32_t>(static_cast<uint32_t>(x / y)));
    EXPECT_EQ(remainder[i], y == 0 ? 0 : ((x % y) + y) % y);
    EXPECT_EQ((va < vb)[i], x < y);
    EXPECT_EQ(select(va < vb, va, vb)[i], std::min(x, y));
    EXPECT_EQ(convert<int64_t>(va)[i], x);
    EXPECT_EQ(convert<double>(va)[i], static_cast<double>(x));
    EXPECT_EQ(from_mask<uint8_t>(va < vb)[i], x < y ? 1 : 0);
  }
}

TEST(Vec, OperatorsAgreeWithScalarsAtEveryWidth) {
  check_operators<1>();
  check_operators<2>();
  check_operators<4>();
  check_operators<16>();
  check_operators<32>();
}

// What the compiler makes of it is 0 or 1.
template <int W>
__attribute__((noinline)) void divide_by_itself(int32_t* to, const int32_t* from) {
  const auto v = load<W>(from);
  store(to, v / v);
}

TEST(Vec, QuotientsOfEqualNumbers) {
  const int32_t x[] = {0, 5, -1, 7};
  int32_t y[4];
  divide_by_itself<2>(y, x);
  divide_by_itself<2>(y + 2, x + 2);
  EXPECT_THAT(y, ::testing::ElementsAre(0, 1, 1, 1));
  divide_by_itself<4>(y, x);
  EXPECT_THAT(y, ::testing::ElementsAre(0, 1, 1, 1));
}

TEST(Vec, MaximumAndMinimumPropagateNan) {
  constexpr int W = kLanes;
  const auto nan = splat<W>(__builtin_nanf("")), one = splat<W>(1.f);
  EXPECT_TRUE(all(is_nan(max(nan, one))));
  EXPECT_TRUE(all(is_nan(max(one, nan))));
  EXPECT_TRUE(all(is_nan(min(nan, one))));
  EXPECT_TRUE(all(is_nan(min(one, nan))));
  EXPECT_TRUE(std::isnan(reduce_max(iota<float, W>() + select(iota<int32_t, W>() == 2, nan, one))));
  EXPECT_EQ(reduce_max(iota<float, W>()), W - 1);
  EXPECT_EQ(reduce_add(iota<float, W>()), W * (W - 1) / 2);
}

template <int W>
void check_half() {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    half h[W];
    for (auto& x : h) x = {static_cast<uint16_t>(bits)};
    const float got = load<W>(h)[W - 1];
    const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
    double want = exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(mantissa + 1024, exponent - 25);
    if (exponent == 31) want = mantissa ? NAN : INFINITY;
    if (bits & 0x8000) want = -want;
    if (std::isnan(want)) {
      ASSERT_TRUE(std::isnan(got)) << bits;
      continue;
    }
    ASSERT_EQ(got, static_cast<float>(want)) << bits;
    // Values around the midpoint to the next one round to nearest even.
    if (exponent == 31) continue;
    const float next = to_float(half{static_cast<uint16_t>(bits + 1)});
    if (!std::isfinite(next)) continue;
    const float middle = (got + next) / 2;
    half r[W];
    store(r, splat<W>(middle));
    ASSERT_EQ(r[0].bits, bits & 1 ? bits + 1 : bits) << bits;
    store(r, splat<W>(std::nextafter(middle, got)));
    ASSERT_EQ(r[0].bits, bits) << bits;
    store(r, splat<W>(std::nextafter(middle, next)));
    ASSERT_EQ(r[0].bits, bits + 1) << bits;
  }
  half r[W];
  store(r, splat<W>(65519.f));
  EXPECT_EQ(r[0].bits, 0x7bff);
  store(r, splat<W>(65520.f));
  EXPECT_EQ(r[0].bits, 0x7c00);
  store(r, splat<W>(__builtin_nanf("")));
  EXPECT_TRUE((r[0].bits & 0x7fff) > 0x7c00);
}

TEST(Vec, HalfConversionsAreExactAndRoundToEven) {
  check_half<1>();
  check_half<kLanes>();
}

TEST(Vec, BfloatRoundsToEvenAndKeepsNan) {
  constexpr int W = kLanes;
  const auto narrow = [](uint32_t bits) {
    bfloat r[W];
    store(r, bit_cast<float>(splat<W>(bits)));
    return r[0].bits;
  };
  EXPECT_EQ(narrow(0x3f808000), 0x3f80);
  EXPECT_EQ(narrow(0x3f818000), 0x3f82);
  EXPECT_EQ(narrow(0x3f808001), 0x3f81);
  EXPECT_EQ(narrow(0x7f7fffff), 0x7f80);
  EXPECT_EQ(narrow(0x7f800001) & 0x7fff, 0x7fc0);
  EXPECT_EQ(to_float(bfloat{0x4049}), 3.140625f);
}

TEST(Vec, PowersOfTwoRoundInTheLogarithm) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (int exponent = -149; exponent < 128; ++exponent) {
    const float power = std::ldexp(1.F, exponent), middle = std::ldexp(1.41421354F, exponent);
    for (const float value : {power, std::nextafter(power, kInfinity), std::nextafter(power, 0.F), middle,
                              std::nextafter(middle, kInfinity), std::nextafter(middle, 0.F)}) {
      const double wanted = std::clamp(std::round(std::log2(static_cast<double>(value))) + 127, 0.0, 254.0);
      if (value > 0) EXPECT_EQ(f8e8m0::encode(value, false), value == kInfinity ? 254 : wanted) << value;
    }
  }
  EXPECT_EQ(f8e8m0::encode(0, false), 0);
  EXPECT_EQ(f8e8m0::encode(-1, false), 255) << "it has no sign";
  EXPECT_EQ(f8e8m0::encode(std::numeric_limits<float>::quiet_NaN(), false), 255);
}

template <typename To>
void check_cast(double value, To want) {
  EXPECT_EQ((cast<To>(splat<kLanes>(static_cast<float>(value)))[0]), want) << value;
  EXPECT_EQ((cast<To>(splat<1>(value))[0]), want) << value;
}

TEST(Vec, FloatToIntegerCastsSaturate) {
  check_cast<int32_t>(-3.9, -3);
  check_cast<int32_t>(3e9, INT32_MAX);
  check_cast<int32_t>(-3e9, INT32_MIN);
  check_cast<int32_t>(NAN, 0);
  check_cast<uint8_t>(-1, 0);
  check_cast<uint8_t>(255.5, 255);
  check_cast<uint8_t>(1e9, 255);
  check_cast<int8_t>(-129, -128);
  check_cast<int64_t>(1e19, INT64_MAX);
  check_cast<int64_t>(-INFINITY, INT64_MIN);
  check_cast<uint64_t>(-0.5, 0);
  check_cast<uint32_t>(4294967040.0, 4294967040u);
}

TEST(Vec, ShiftsBeyondTheWidthGiveZero) {
  const auto x = splat<4>(uint32_t{0x80000001});
  EXPECT_EQ(shl(x, splat<4>(uint32_t{31}))[1], 0x80000000u);
  EXPECT_EQ(shl(x, splat<4>(uint32_t{32}))[1], 0u);
  EXPECT_EQ(shr(x, splat<4>(uint32_t{31}))[2], 1u);
  EXPECT_EQ(shr(x, splat<4>(uint32_t{77}))[3], 0u);
  EXPECT_EQ(shr(splat<4>(int32_t{-9}), splat<4>(int32_t{1}))[0], -5);
  EXPECT_EQ(shr(splat<4>(int32_t{-9}), splat<4>(int32_t{32}))[0], 0);
  EXPECT_EQ(shr(splat<4>(int32_t{-9}), splat<4>(int32_t{-1}))[0], 0);
}

// A float that is the number, or the odd one of its two neighbours.
template <typename T, int W>
void check_odd(T value) {
  const float got = to_odd(splat<W>(value))[W - 1];
  const auto exact = static_cast<long double>(value);
  if (exact != exact || exact - exact != 0) {
    EXPECT_TRUE(got == static_cast<float>(value) || (got != got && value != value)) << W << " lanes";
    return;
  }
  if (static_cast<long double>(got) == exact) return;
  EXPECT_EQ(__builtin_bit_cast(uint32_t, got) & 1u, 1u) << exact << ", " << W << " lanes";
  const float beyond = std::nextafterf(got, exact > got ? INFINITY : -INFINITY);
  EXPECT_TRUE(exact > got ? beyond > exact : beyond < exact) << exact << ", " << W << " lanes";
}
template <typename T>
void check_odd_at_every_width(T value) {
  check_odd<T, 1>(value);
  check_odd<T, 2>(value);
  check_odd<T, 8>(value);
  check_odd<T, 32>(value);
}

TEST(Vec, RoundingToOddKeepsTheSideOfATie) {
  std::mt19937_64 random(3);
  for (double special :
       {0.0, -0.0, 1 + 0x1p-40, -1 - 0x1p-30, 0x1p-149, 0x1.8p-150, 0x1p-127 + 0x1p-170, 3e38, -1.0, 0.1}) {
    check_odd_at_every_width(special);
  }
  check_odd_at_every_width(static_cast<double>(INFINITY));
  check_odd_at_every_width(static_cast<double>(NAN));
  for (int i = 0; i < 200; ++i) {
    check_odd_at_every_width(std::ldexp(static_cast<double>(random() >> 11), static_cast<int>(random() % 180) - 190));
    check_odd_at_every_width(static_cast<int64_t>(random()) >> (random() % 64));
    check_odd_at_every_width(random() >> (random() % 64));
    check_odd_at_every_width(static_cast<int32_t>(random()) >> (random() % 32));
    check_odd_at_every_width(static_cast<uint32_t>(random()) >> (random() % 32));
  }
}

// A product that a sum takes in keeps its rounding.
TEST(Vec, RoundedProductsAreNoPartOfASum) {
  const auto check = [](auto one, auto small) {
    using T = decltype(one);
    const T a = one + small, product = a * a;
    EXPECT_EQ((mul_rounded(splat<1>(a), splat<1>(a)) - splat<1>(product))[0], T(0));
    EXPECT_EQ((mul_rounded(splat<4>(a), splat<4>(a)) - splat<4>(product))[3], T(0));
    EXPECT_EQ((mul_rounded(splat<kLanes>(a), splat<kLanes>(a)) - splat<kLanes>(product))[1], T(0));
    EXPECT_EQ((mul_rounded(splat<32>(a), splat<32>(a)) - splat<32>(product))[31], T(0));
  };
  volatile float small = 0x1p-13f;
  volatile double tiny = 0x1p-30;
  check(1.f, float(small));
  check(1.0, double(tiny));
}

template <typename T, int W>
void check_gathers() {
  Guarded<T> in(3 * W);
  std::mt19937 random(7);
  testing::fill(in, random);
  vec<int32_t, W> index;
  int32_t memory[W];
  for (int i = 0; i < W; ++i) index.set(i, memory[i] = static_cast<int32_t>(random() % (3 * W)));
  for (int64_t n = 1; n <= W; ++n) {
    const auto lanes = gather_lanes(in.data(), index, n), at = gather_at<W>(in.data(), memory, n);
    const auto strided = load_strided_n<W>(in.data() + 1, 2, n);
    for (int i = 0; i < n; ++i) {
      EXPECT_EQ(lanes[i], in[memory[i]]);
      EXPECT_EQ(at[i], in[memory[i]]);
    }
    for (int i = 0; i < W; ++i) EXPECT_EQ(strided[i], i < n ? in[1 + 2 * i] : T(0)) << n << " of " << W;
  }
  const auto even = load_strided<W>(in.data(), 2);
  for (int i = 0; i < W; ++i) EXPECT_EQ(even[i], in[2 * i]);
}

TEST(Vec, GathersReadTheirElements) {
  check_gathers<float, 1>();
  check_gathers<float, 8>();
  check_gathers<float, 16>();
  check_gathers<double, 8>();
  check_gathers<int64_t, 16>();
  check_gathers<uint8_t, 8>();
}

// Positions that ascend by less than one or two vectors, up to the last element that may be read.
TEST(Vec, NearGathersReadTheirElements) {
  constexpr int W = kLanes, extent = 5 * W;
  Guarded<float> in(extent);
  std::mt19937 random(7);
  testing::fill(in, random);
  const auto check = [&](auto vectors, int first) {
    int32_t index[W];
    for (int i = 0; i < W; ++i) index[i] = std::min(first + i * (vectors * W - 1) / (W > 1 ? W - 1 : 1), extent - 1);
    for (int64_t n = 1; n <= W; ++n) {
      const auto v = gather_near<W, vectors>(in.data(), index, extent, n);
      for (int i = 0; i < n; ++i) EXPECT_EQ(v[i], in[index[i]]) << n << " lanes from " << first;
    }
    const auto v = gather_near<W, vectors>(in.data(), index, extent, index_constant<W>{});
    for (int i = 0; i < W; ++i) EXPECT_EQ(v[i], in[index[i]]) << "all lanes from " << first;
  };
  for (int first = 0; first < extent; ++first) {
    check(index_constant<1>{}, first);
    check(index_constant<2>{}, first);
  }
}

template <typename T>
void check_wrapped(std::vector<int64_t> values, int64_t extent) {
  for (const int64_t value : values) {
    const int64_t full = static_cast<int64_t>(static_cast<T>(value));
    const int64_t counted = full < 0 && std::is_signed_v<T> ? full + extent : full;
    const bool beyond = !std::is_signed_v<T> && static_cast<uint64_t>(static_cast<T>(value)) >= uint64_t(extent);
    const int64_t expected = beyond ? extent - 1 : std::clamp<int64_t>(counted, 0, extent - 1);
    const auto wrapped = wrap_lanes(splat<kLanes>(static_cast<T>(value)), extent);
    EXPECT_EQ(wrapped[kLanes - 1], expected) << value << " of " << extent;
  }
}

TEST(Vec, PositionsWrapAndClamp) {
  const std::vector<int64_t> values = {0,   1,    -1,  99,        100,       -100,      -101,
                                       127, -128, 200, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN};
  for (const int64_t extent : {1, 100, 1000}) {
    check_wrapped<int64_t>(values, extent);
    check_wrapped<int32_t>(values, extent);
    check_wrapped<int8_t>(values, extent);
    check_wrapped<uint8_t>(values, extent);
    check_wrapped<uint32_t>(values, extent);
    check_wrapped<uint64_t>(values, extent);
  }
}

// Sums are exact, also where instructions with 16-bit sums would saturate.
template <int W>
void check_words() {
  std::mt19937 random(5);
  for (int run = 0; run < 200; ++run) {
    int32_t a[W], b[W], sum[W], shorts[W], bytes[W];
    for (int i = 0; i < W; ++i) {
      a[i] = run == 0 ? -1 : int32_t(random());
      b[i] = run == 0 ? int32_t(0x7f7f7f7f) : int32_t(random());
      sum[i] = int32_t(random());
    }
    store(shorts, multiply_words<short_pair>(load<W>(a), load<W>(b), load<W>(sum)));
    store(bytes, multiply_words<byte_quad>(load<W>(a), load<W>(b), load<W>(sum)));
    for (int i = 0; i < W; ++i) {
      uint32_t of_shorts = uint32_t(sum[i]), of_bytes = uint32_t(sum[i]);
      for (int k = 0; k < 2; ++k) of_shorts += uint32_t(int16_t(a[i] >> 16 * k) * int16_t(b[i] >> 16 * k));
      for (int k = 0; k < 4; ++k) of_bytes += uint32_t(uint8_t(a[i] >> 8 * k) * int8_t(b[i] >> 8 * k));
      EXPECT_EQ(shorts[i], int32_t(of_shorts)) << W << " lanes, lane " << i;
      EXPECT_EQ(bytes[i], int32_t(of_bytes)) << W << " lanes, lane " << i;
    }
  }
}

TEST(Vec, SumsOfProductsOfWordsAreExact) {
  check_words<4>();
  check_words<8>();
  check_words<16>();
  check_words<32>();
}

// Two numbers a lane: the sum rounds twice.
template <int W>
void check_bfloat_words() {
  std::mt19937 random(6);
  std::uniform_real_distribution<float> numbers(-2, 2);
  const auto pair = [&](double(&both)[2]) {
    uint32_t bits = 0;
    for (int k = 0; k < 2; ++k) {
      const bfloat number = to_bfloat(numbers(random));
      both[k] = to_float(number);
      bits |= uint32_t(number.bits) << 16 * k;
    }
    return __builtin_bit_cast(float, bits);
  };
  for (int run = 0; run < 100; ++run) {
    float a[W], b[W], sum[W], got[W];
    double want[W];
    for (int i = 0; i < W; ++i) {
      double x[2], y[2];
      a[i] = pair(x), b[i] = pair(y);
      sum[i] = numbers(random);
      want[i] = double(sum[i]) + x[0] * y[0] + x[1] * y[1];
    }
    store(got, multiply_words<bfloat_pair>(load<W>(a), load<W>(b), load<W>(sum)));
    for (int i = 0; i < W; ++i) EXPECT_NEAR(got[i], want[i], 2e-6) << W << " lanes, lane " << i;
  }
}

TEST(Vec, SumsOfProductsOfBfloats) {
  check_bfloat_words<4>();
  check_bfloat_words<8>();
  check_bfloat_words<16>();
  check_bfloat_words<32>();
}

}  // namespace
}  // namespace heddle::tile
