#include "tile/op/math.h"

#include <cstring>
#include <utility>

#include "testing.h"
#include "tile/arch/cpu/look_up.h"
#include "tile/op/cuda/rounding.h"

namespace heddle::tile {
namespace {

double ulps(float got, double want) {
  const float rounded = static_cast<float>(want);
  if (std::isnan(want)) return std::isnan(got) ? 0 : 1e9;
  if (std::isinf(rounded) || std::isnan(got) || std::isinf(got)) return got == rounded ? 0 : 1e9;
  const double ulp = std::nextafter(std::fabs(rounded), INFINITY) - static_cast<double>(std::fabs(rounded));
  return std::fabs(got - want) / ulp;
}

// The largest error of `f` against `exact` over a range and over all bit patterns.
template <int W, typename F, typename G>
double worst(F f, G exact, float low, float high) {
  std::mt19937 random(static_cast<unsigned>(W));
  double result = 0;
  for (int round = 0; round < 60000 / W; ++round) {
    float in[W], out[W];
    for (auto& x : in) {
      const uint32_t bits = static_cast<uint32_t>(random());
      if (round % 2 == 0) {
        x = low + (high - low) * static_cast<float>(bits / 4294967296.0);
      } else {
        std::memcpy(&x, &bits, sizeof(x));
      }
    }
    store(out, f(load<W>(in)));
    for (int i = 0; i < W; ++i) result = std::max(result, ulps(out[i], exact(static_cast<double>(in[i]))));
  }
  for (float x : {0.f, -0.f, INFINITY, -INFINITY, NAN, 1.f, -1.f, 1e-40f, -1e-40f, 3e38f, 88.722f, 88.73f, -103.9f}) {
    result = std::max(result, ulps(f(splat<W>(x))[0], exact(static_cast<double>(x))));
  }
  return result;
}

#define EXPECT_ACCURATE(NAME, LOW, HIGH, ULPS)                                                                        \
  EXPECT_LE((worst<kLanes>([](auto v) { return NAME(v); }, [](double x) { return std::NAME(x); }, LOW, HIGH)), ULPS); \
  EXPECT_LE((worst<1>([](auto v) { return NAME(v); }, [](double x) { return std::NAME(x); }, LOW, HIGH)), ULPS)

TEST(Math, FloatFunctionsStayWithinTheirBounds) {
  EXPECT_ACCURATE(exp, -105, 90, 2);
  EXPECT_ACCURATE(expm1, -2, 2, 3);
  EXPECT_ACCURATE(log, 0, 4, 2);
  EXPECT_ACCURATE(log1p, -0.9f, 2, 3);
  EXPECT_ACCURATE(tanh, -10, 10, 6);
  EXPECT_ACCURATE(erf, -5, 5, 7);
  EXPECT_ACCURATE(erfc, -5, 9, 8);
  EXPECT_ACCURATE(log2, 0, 100, 3);
  EXPECT_ACCURATE(sin, -100, 100, 3);
  EXPECT_ACCURATE(cos, -100, 100, 3);
  EXPECT_ACCURATE(sqrt, 0, 9, 0.5);
  EXPECT_ACCURATE(floor, -5, 5, 0);
  EXPECT_ACCURATE(ceil, -5, 5, 0);
  EXPECT_ACCURATE(trunc, -5, 5, 0);
  EXPECT_ACCURATE(atan, -5, 5, 1);
  EXPECT_LE((worst<kLanes>([](auto v) { return round_even(v); }, [](double x) { return std::nearbyint(x); }, -9, 9)),
            0);
}

template <int W>
void check_rounding_to_int() {
  for (int first = -40; first < 40; first += W) {
    float in[W];
    int32_t out[W];
    for (int i = 0; i < W; ++i) in[i] = static_cast<float>(first + i) * 0.25F;
    store(out, round_to_int(load<W>(in)));
    for (int i = 0; i < W; ++i) EXPECT_EQ(out[i], static_cast<int>(std::nearbyint(in[i]))) << in[i];
  }
}

TEST(Math, RoundsToIntegers) {
  check_rounding_to_int<1>();
  check_rounding_to_int<kLanes>();
  check_rounding_to_int<2 * kLanes>();
}

// 256 bytes in a scrambled order.
template <uint64_t... I>
constexpr auto& scrambled(std::integer_sequence<uint64_t, I...>) {
  return byte_table<((I + 1) * 0x9e3779b97f4a7c15)...>;
}

template <typename T, int W>
void check_look_up() {
  constexpr auto& table = scrambled(std::make_integer_sequence<uint64_t, 32>());
  T bytes[256];
  std::memcpy(bytes, table, sizeof(bytes));
  for (int first = -128; first < 256; first += W) {
    int32_t in[W], out[W];
    for (int i = 0; i < W; ++i) in[i] = first + i;
    store(out, look_up_bytes<T>(table, load<W>(in)));
    for (int i = 0; i < W; ++i) EXPECT_EQ(out[i], bytes[in[i] & 255]) << in[i];
  }
}

TEST(Math, LooksUpBytes) {
  check_look_up<uint8_t, 1>();
  check_look_up<int8_t, 1>();
  check_look_up<uint8_t, kLanes>();
  check_look_up<int8_t, kLanes>();
  check_look_up<int8_t, 2 * kLanes>();
}

// Quotients as divisions round them, in particular around ties and bounds of the rounding that follows.
template <typename To, int Zero>
void check_quotients() {
  std::mt19937 random(::testing::UnitTest::GetInstance()->random_seed() + 5);
  std::uniform_real_distribution<float> mantissa(1, 2), value(-300, 300);
  std::vector<float> special = {0.f, -0.f, INFINITY, -INFINITY, NAN, 1e-45f, -1e-38f, 3e38f};
  for (int i = 0; i < 2000; ++i) {
    const float divisor = std::ldexp(mantissa(random), static_cast<int>(random() % 80) - 40);
    const float reciprocal = 1 / divisor;
    const auto rest = static_cast<float>(1 / double{divisor} - double{reciprocal});
    for (int k = 0; k < 64; ++k) {
      float x = (k % 2 == 0 ? value(random) : std::floor(value(random)) + 0.5f) * divisor;
      for (int step = static_cast<int>(random() % 3); step > 0; --step) x = std::nextafter(x, 0.f);
      if (k < static_cast<int>(special.size())) x = special[static_cast<size_t>(k)];
      const auto quotient = saturated_quotient<To, Zero>(splat<kLanes>(x), divisor, reciprocal, rest);
      const auto expected = round_even(saturated<To, Zero>(splat<1>(x / divisor)));
      ASSERT_EQ(round_even(quotient)[0], expected[0]) << x << " / " << divisor;
      ASSERT_EQ(round_small_to_int(quotient)[0], static_cast<int32_t>(expected[0])) << x << " / " << divisor;
      const float near = saturated_near_quotient<To, Zero>(splat<kLanes>(x), divisor, reciprocal, rest)[0];
      const float least = std::nextafter(quotient[0], -INFINITY), most = std::nextafter(quotient[0], INFINITY);
      ASSERT_TRUE(near >= least && near <= most) << x << " / " << divisor;
    }
  }
}

TEST(Math, QuotientsForRounding) {
  const vec<float, 1> unit = splat<1>(0x1p-23f), one = splat<1>(1.f);
  if (fma(one + unit, one - unit, -one)[0] == 0) GTEST_SKIP() << "this target rounds products before they are added";
  check_quotients<uint8_t, 0>();
  check_quotients<uint8_t, 131>();
  check_quotients<int8_t, -5>();
}

TEST(Math, ExponentialsOfNonpositiveNumbersEndAtZero) {
  const auto exact = [](double x) { return -std::fabs(x) < -86 ? 0 : std::exp(-std::fabs(x)); };
  EXPECT_LE((worst<kLanes>([](auto v) { return exp_nonpositive(-abs(v)); }, exact, -90, 0)), 2);
  EXPECT_LE((worst<1>([](auto v) { return exp_nonpositive(-abs(v)); }, exact, -1, 0)), 2);
}

TEST(Math, PowFollowsTheCLibrary) {
  const float special[] = {0.f,  -0.f, 1.f,  -1.f, INFINITY, -INFINITY, NAN,    2.f,
                           -2.f, 3.f,  -3.f, 0.5f, -0.5f,    1e30f,     -1e30f, 1e-40f};
  for (float a : special) {
    for (float b : special) {
      EXPECT_LE(ulps(pow(splat<kLanes>(a), splat<kLanes>(b))[0], std::pow(static_cast<double>(a), b)), 1)
          << a << " to the " << b;
    }
  }
  std::mt19937 random(3);
  for (int i = 0; i < 20000; ++i) {
    float a;
    const uint32_t bits = static_cast<uint32_t>(random());
    std::memcpy(&a, &bits, sizeof(a));
    const float b = static_cast<float>(static_cast<int>(random() % 2000) - 1000) / 97.f;
    EXPECT_LE(ulps(pow(splat<1>(a), splat<1>(b))[0], std::pow(static_cast<double>(a), b)), 1) << a << " to the " << b;
  }
  EXPECT_EQ(pow(splat<4>(int64_t{-3}), splat<4>(int64_t{3}))[0], -27);
  EXPECT_EQ(pow(splat<4>(int64_t{2}), splat<4>(int64_t{-1}))[0], 0);
}

TEST(Math, DoubleFunctionsAreTheCLibrarys) {
  const double values[] = {0.3, -1.5, 2.25, 0.0};
  const vec<double, 4> x = load<4>(values);
  for (int i = 0; i < 4; ++i) {
    EXPECT_DOUBLE_EQ(exp(x)[i], std::exp(x[i]));
    EXPECT_DOUBLE_EQ(erf(x)[i], std::erf(x[i]));
    EXPECT_DOUBLE_EQ(tanh(x)[i], std::tanh(x[i]));
    EXPECT_DOUBLE_EQ(sqrt(abs(x))[i], std::sqrt(std::fabs(x[i])));
  }
}

}  // namespace
}  // namespace heddle::tile
