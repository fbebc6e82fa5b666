#include <cmath>
#include <limits>

#include "tests/ir/testing.h"

namespace heddle::ir::testing {
namespace {

std::vector<double> unary(Op op, std::vector<double> x) {
  const auto count = static_cast<int64_t>(x.size());
  return eval_op(op, {reals({count}, std::move(x))})[0].f();
}

std::vector<int64_t> binary(Op op, DType dtype, std::vector<int64_t> a, std::vector<int64_t> b) {
  const auto count = static_cast<int64_t>(a.size());
  return eval_op(op, {integers({count}, std::move(a), dtype), integers({count}, std::move(b), dtype)})[0].i();
}

std::vector<double> binary(Op op, std::vector<double> a, std::vector<double> b) {
  const auto count = static_cast<int64_t>(a.size());
  return eval_op(op, {reals({count}, std::move(a)), reals({count}, std::move(b))})[0].f();
}

std::vector<int64_t> to_int(std::vector<double> x, DType to) {
  const auto count = static_cast<int64_t>(x.size());
  return eval_op(Op::kCast, {reals({count}, std::move(x))}, {{"to", to}})[0].i();
}

std::vector<double> to_real(std::vector<double> x, DType to, bool round, bool saturate = true) {
  const auto count = static_cast<int64_t>(x.size());
  return eval_op(Op::kCast, {reals({count}, std::move(x))}, {{"to", to}, {"saturate", int64_t{saturate}}}, round)[0]
      .f();
}

TEST(Elementwise, UnaryMatchesLibm) {
  struct Case {
    Op op;
    double (*f)(double);
    double low, high;
  };
  const Case cases[] = {
      {Op::kExp, std::exp, -9, 9},       {Op::kExpm1, std::expm1, -2, 2}, {Op::kLog, std::log, 0.1, 9},
      {Op::kLog1p, std::log1p, -.9, 9},  {Op::kSin, std::sin, -9, 9},     {Op::kCos, std::cos, -9, 9},
      {Op::kTan, std::tan, -1.5, 1.5},   {Op::kAsin, std::asin, -1, 1},   {Op::kAcos, std::acos, -1, 1},
      {Op::kAtan, std::atan, -9, 9},     {Op::kSinh, std::sinh, -5, 5},   {Op::kCosh, std::cosh, -5, 5},
      {Op::kTanh, std::tanh, -5, 5},     {Op::kAsinh, std::asinh, -9, 9}, {Op::kAcosh, std::acosh, 1, 9},
      {Op::kAtanh, std::atanh, -.9, .9}, {Op::kErf, std::erf, -4, 4},     {Op::kErfc, std::erfc, -4, 9},
      {Op::kLog2, std::log2, .1, 9},     {Op::kSqrt, std::sqrt, 0, 9},    {Op::kFloor, std::floor, -9, 9},
      {Op::kCeil, std::ceil, -9, 9},     {Op::kTrunc, std::trunc, -9, 9}, {Op::kAbs, std::fabs, -9, 9}};
  for (const Case& item : cases) {
    const Array x = random_array(DType::kF64, {3, 0x2001}, static_cast<uint64_t>(item.op), item.low, item.high);
    const Array y = eval_op(item.op, {x})[0];
    for (size_t i = 0; i < x.f().size(); ++i) ASSERT_DOUBLE_EQ(y.f()[i], item.f(x.f()[i])) << to_string(item.op);
  }
}

TEST(Elementwise, RoundIsHalfToEven) {
  EXPECT_EQ(unary(Op::kRound, {0.5, 1.5, 2.5, -0.5, -1.5, 2.4}), (std::vector<double>{0, 2, 2, 0, -2, 2}));
}

TEST(Elementwise, SignAndRsqrt) {
  EXPECT_EQ(unary(Op::kSign, {-3, 0, 7}), (std::vector<double>{-1, 0, 1}));
  EXPECT_TRUE(std::isnan(unary(Op::kSign, {kNan})[0]));
  EXPECT_EQ(unary(Op::kRsqrt, {4, 0}), (std::vector<double>{0.5, kInf}));
}

TEST(Elementwise, Classification) {
  const Array x = reals({4}, {kNan, kInf, -kInf, 1});
  EXPECT_EQ(eval_op(Op::kIsNan, {x})[0].i(), (Ints{1, 0, 0, 0}));
  EXPECT_EQ(eval_op(Op::kIsInf, {x}, {{"positive", int64_t{1}}, {"negative", int64_t{0}}})[0].i(), (Ints{0, 1, 0, 0}));
  EXPECT_EQ(eval_op(Op::kIsInf, {x}, {{"positive", int64_t{0}}, {"negative", int64_t{1}}})[0].i(), (Ints{0, 0, 1, 0}));
}

TEST(Elementwise, IntegersWrap) {
  EXPECT_EQ(binary(Op::kAdd, DType::kI8, {127, -128, 3}, {1, -1, 4}), (Ints{-128, 127, 7}));
  EXPECT_EQ(binary(Op::kSub, DType::kU8, {0, 200}, {1, 100}), (Ints{255, 100}));
  EXPECT_EQ(binary(Op::kMul, DType::kI32, {65536, -3}, {65536, 5}), (Ints{0, -15}));
  EXPECT_EQ(binary(Op::kAdd, DType::kI64, {INT64_MAX}, {1}), (Ints{INT64_MIN}));
  EXPECT_EQ(binary(Op::kMul, DType::kI4, {7}, {2}), (Ints{-2}));
  EXPECT_EQ(eval_op(Op::kNeg, {integers({2}, {-128, 5}, DType::kI8)})[0].i(), (Ints{-128, -5}));
  EXPECT_EQ(eval_op(Op::kNeg, {integers({2}, {1, 0}, DType::kU16)})[0].i(), (Ints{65535, 0}));
  EXPECT_EQ(eval_op(Op::kAbs, {integers({2}, {-128, -5}, DType::kI8)})[0].i(), (Ints{-128, 5}));
  EXPECT_EQ(eval_op(Op::kSign, {integers({3}, {-7, 0, 9})})[0].i(), (Ints{-1, 0, 1}));
  EXPECT_EQ(eval_op(Op::kSign, {integers({2}, {-1, 0}, DType::kU64)})[0].i(), (Ints{1, 0}));
  EXPECT_EQ(eval_op(Op::kNot, {integers({2}, {0, 5}, DType::kU4)})[0].i(), (Ints{15, 10}));
  EXPECT_EQ(eval_op(Op::kNot, {integers({2}, {0, 1}, DType::kBool)})[0].i(), (Ints{1, 0}));
}

TEST(Elementwise, IntegerDivision) {
  EXPECT_EQ(binary(Op::kDiv, DType::kI32, {7, -7, 7, 5}, {2, 2, -2, 0}), (Ints{3, -3, -3, 0}));
  EXPECT_EQ(binary(Op::kDiv, DType::kI64, {INT64_MIN}, {-1}), (Ints{INT64_MIN}));
  EXPECT_EQ(binary(Op::kDiv, DType::kI8, {-128}, {-1}), (Ints{-128}));
  EXPECT_EQ(binary(Op::kRem, DType::kI32, {7, -7, 7, 5}, {3, 3, -3, 0}), (Ints{1, -1, 1, 0}));
  EXPECT_EQ(binary(Op::kRem, DType::kI64, {INT64_MIN}, {-1}), (Ints{0}));
  EXPECT_EQ(binary(Op::kMod, DType::kI32, {7, -7, 7, -7, 5}, {3, 3, -3, -3, 0}), (Ints{1, 2, -2, -1, 0}));
  EXPECT_EQ(binary(Op::kDiv, DType::kU64, {-1}, {2}), (Ints{INT64_MAX}));
  EXPECT_EQ(binary(Op::kMod, DType::kU64, {-1}, {10}), (Ints{5}));
}

TEST(Elementwise, IntegerPower) {
  EXPECT_EQ(binary(Op::kPow, DType::kI32, {3, 2, 0, -2, 7}, {4, 31, 0, 3, 0}), (Ints{81, INT32_MIN, 1, -8, 1}));
  EXPECT_EQ(binary(Op::kPow, DType::kI64, {1, -1, -1, 2, 0}, {-5, -3, -4, -1, -1}), (Ints{1, -1, 1, 0, 0}));
}

TEST(Elementwise, Shifts) {
  EXPECT_EQ(binary(Op::kShl, DType::kU8, {1, 255, 1}, {7, 4, 8}), (Ints{128, 240, 0}));
  EXPECT_EQ(binary(Op::kShr, DType::kU64, {-1, -1}, {63, 64}), (Ints{1, 0}));
  EXPECT_EQ(binary(Op::kShr, DType::kI8, {-8, -8, -8}, {1, 7, 8}), (Ints{-4, -1, 0}));
}

TEST(Elementwise, UnsignedComparisonsOfU64) {
  EXPECT_EQ(binary(Op::kLt, DType::kU64, {-1, 1}, {1, -1}), (Ints{0, 1}));
  EXPECT_EQ(binary(Op::kMax, DType::kU64, {-1}, {1}), (Ints{-1}));
  EXPECT_EQ(binary(Op::kLt, DType::kI64, {-1, 1}, {1, -1}), (Ints{1, 0}));
}

TEST(Elementwise, RealDivisionAndRemainders) {
  EXPECT_EQ(binary(Op::kRem, {7, -7, 7}, {3, 3, -3}), (std::vector<double>{1, -1, 1}));
  EXPECT_EQ(binary(Op::kMod, {7, -7, 7, -7}, {3, 3, -3, -3}), (std::vector<double>{1, 2, -2, -1}));
  EXPECT_EQ(binary(Op::kMod, {-1}, {kInf}), (std::vector<double>{kInf}));
  EXPECT_EQ(binary(Op::kDiv, {1, -1}, {0, 0}), (std::vector<double>{kInf, -kInf}));
  EXPECT_EQ(binary(Op::kPow, {2, -8}, {0.5, 3}), (std::vector<double>{std::sqrt(2), -512}));
}

TEST(Elementwise, NanWinsInMaxAndMin) {
  for (Op op : {Op::kMax, Op::kMin}) {
    const auto r = binary(op, {kNan, 1, kNan}, {1, kNan, kNan});
    for (double v : r) EXPECT_TRUE(std::isnan(v));
  }
  EXPECT_EQ(binary(Op::kMax, {1, -kInf}, {2, -3}), (std::vector<double>{2, -3}));
  EXPECT_EQ(binary(Op::kMin, {1, -kInf}, {2, -3}), (std::vector<double>{1, -kInf}));
}

TEST(Elementwise, ComparisonsWithNanAreFalseButNe) {
  const Array a = reals({3}, {1, kNan, 2}), b = reals({3}, {1, kNan, 1});
  EXPECT_EQ(eval_op(Op::kEq, {a, b})[0].i(), (Ints{1, 0, 0}));
  EXPECT_EQ(eval_op(Op::kNe, {a, b})[0].i(), (Ints{0, 1, 1}));
  EXPECT_EQ(eval_op(Op::kGe, {a, b})[0].i(), (Ints{1, 0, 1}));
  EXPECT_EQ(eval_op(Op::kLe, {a, b})[0].i(), (Ints{1, 0, 0}));
  EXPECT_EQ(eval_op(Op::kGt, {a, b})[0].i(), (Ints{0, 0, 1}));
}

TEST(Elementwise, Select) {
  const Array condition = integers({3}, {1, 0, 1}, DType::kBool);
  EXPECT_EQ(eval_op(Op::kSelect, {condition, reals({3}, {1, 2, 3}), reals({3}, {4, kNan, 6})})[0].f()[0], 1);
  EXPECT_EQ(eval_op(Op::kSelect, {condition, integers({3}, {1, 2, 3}), integers({3}, {4, 5, 6})})[0].i(),
            (Ints{1, 5, 3}));
}

TEST(Cast, RealToIntegerSaturates) {
  EXPECT_EQ(to_int({1.9, -1.9, 300, -300, kNan, kInf, -kInf}, DType::kI8), (Ints{1, -1, 127, -128, 0, 127, -128}));
  EXPECT_EQ(to_int({-1, 255.5, 256}, DType::kU8), (Ints{0, 255, 255}));
  EXPECT_EQ(to_int({0x1p63, -0x1p63, 1e300}, DType::kI64), (Ints{INT64_MAX, INT64_MIN, INT64_MAX}));
  EXPECT_EQ(to_int({0x1p63, 0x1p64, -1, kNan}, DType::kU64), (Ints{INT64_MIN, -1, 0, 0}));
  EXPECT_EQ(to_int({9, -9, 3.5}, DType::kI4), (Ints{7, -8, 3}));
  EXPECT_EQ(to_int({0, -0.0, 0.25, kNan}, DType::kBool), (Ints{0, 0, 1, 1}));
}

TEST(Cast, IntegerToIntegerWraps) {
  const Array x = integers({4}, {300, -1, 256, 127});
  EXPECT_EQ(eval_op(Op::kCast, {x}, {{"to", DType::kI8}})[0].i(), (Ints{44, -1, 0, 127}));
  EXPECT_EQ(eval_op(Op::kCast, {x}, {{"to", DType::kU8}})[0].i(), (Ints{44, 255, 0, 127}));
  EXPECT_EQ(eval_op(Op::kCast, {x}, {{"to", DType::kBool}})[0].i(), (Ints{1, 1, 1, 1}));
}

TEST(Cast, IntegerToReal) {
  const Array big = integers({1}, {-1}, DType::kU64);
  EXPECT_EQ(eval_op(Op::kCast, {big}, {{"to", DType::kF64}})[0].f()[0], 0x1p64);
  // 2^24 + 1 + 2^-29 of it: rounding through double would land on the tie and go down.
  const int64_t odd = (int64_t{1} << 60) + (int64_t{1} << 36) + 1;
  const Array x = integers({1}, {odd});
  EXPECT_EQ(eval_op(Op::kCast, {x}, {{"to", DType::kF32}}, true)[0].f()[0], static_cast<float>(odd));
}

TEST(Cast, RoundingModes) {
  EXPECT_EQ(to_real({0.1}, DType::kF32, false)[0], 0.1);
  EXPECT_EQ(to_real({0.1}, DType::kF32, true)[0], 0.1f);
  EXPECT_EQ(to_real({1 + 0x1p-11, 1 + 0x3p-11, 65520, 65519, 0x1p-25}, DType::kF16, true),
            (std::vector<double>{1, 1 + 0x1p-9, kInf, 65504, 0}));
  EXPECT_EQ(to_real({1 + 0x1p-8, 1 + 0x3p-8, 3.4e38}, DType::kBF16, true), (std::vector<double>{1, 1 + 0x1p-6, kInf}));
}

TEST(Cast, NarrowFloatsQuantiseInBothModes) {
  for (bool round : {false, true}) {
    EXPECT_EQ(to_real({1.06, 500, -1e9, 17}, DType::kF8E4M3, round), (std::vector<double>{1, 448, -448, 16}));
    EXPECT_TRUE(std::isnan(to_real({1e9}, DType::kF8E4M3, round, false)[0]));
    EXPECT_EQ(to_real({1e9, kInf}, DType::kF8E5M2, round, false), (std::vector<double>{kInf, kInf}));
    EXPECT_EQ(to_real({1e9}, DType::kF8E5M2, round), (std::vector<double>{57344}));
    EXPECT_EQ(to_real({0.7, 2.4, 100, -5.1}, DType::kF4E2M1, round), (std::vector<double>{0.5, 2, 6, -6}));
  }
}

TEST(Cast, RoundingOfEveryHalfNeighbourAgreesWithTheDefinition) {
  std::mt19937_64 random(7);
  std::vector<double> values;
  for (int i = 0; i < 20000; ++i) {
    const double magnitude =
        std::ldexp(1 + static_cast<double>(random() % 4096) / 4096, static_cast<int>(random() % 50) - 30);
    values.push_back(random() % 2 ? magnitude : -magnitude);
  }
  for (DType dtype : {DType::kF16, DType::kBF16}) {
    const auto rounded = to_real(values, dtype, true);
    for (size_t i = 0; i < values.size(); ++i) ASSERT_EQ(rounded[i], round_to(dtype, values[i])) << values[i];
  }
}

TEST(Bitcast, KeepsBits) {
  const Array x = reals({2}, {1, -2}, DType::kF32);
  EXPECT_EQ(eval_op(Op::kBitcast, {x}, {{"to", DType::kU32}})[0].i(), (Ints{0x3f800000, 0xc0000000}));
  const Array y = integers({2}, {0x3c00, 0xc000}, DType::kU16);
  EXPECT_EQ(eval_op(Op::kBitcast, {y}, {{"to", DType::kF16}})[0].f(), (std::vector<double>{1, -2}));
  EXPECT_EQ(eval_op(Op::kBitcast, {integers({1}, {255}, DType::kU8)}, {{"to", DType::kI8}})[0].i(), (Ints{-1}));
}

TEST(Elementwise, EmptyAndScalar) {
  EXPECT_EQ(eval_op(Op::kExp, {reals({0, 5}, {})})[0].shape, (Shape{0, 5}));
  EXPECT_EQ(eval_op(Op::kExp, {reals({}, {0})})[0].f(), (std::vector<double>{1}));
}

}  // namespace
}  // namespace heddle::ir::testing
