// Texts of epilogues: what they mean, and what is said about wrong ones.
#include "ops/expression.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "ops/epilogue.h"
#include "tests/error_of.h"

namespace heddle::ops {
namespace {

using test::error_of;
using testing::HasSubstr;

constexpr double kBias = 0.75, kResidual = -1.5, kScale = 3;

GemmProblem problem_of(const std::string& epilogue) {
  GemmProblem p;
  p.m = 5, p.n = 7, p.k = 3, p.batch = 2;
  p.in = p.out = DType::kF32;
  p.ldd = 9, p.stride_d = 50;
  p.epilogue = epilogue;
  p.operands = {{.name = "bias", .dtype = DType::kF32, .stride = 0},
                {.name = "residual", .kind = Operand::Kind::kMatrix, .dtype = DType::kF16, .leading = 11, .stride = 60},
                {.name = "row", .kind = Operand::Kind::kRow, .dtype = DType::kF32, .stride = 5},
                {.name = "scale", .kind = Operand::Kind::kScalar, .dtype = DType::kF32, .stride = 0}};
  return p;
}

double value_of(const std::string& epilogue, double x) {
  const LoweredEpilogue e = lower_epilogue(problem_of(epilogue), DType::kF32);
  return evaluate_epilogue(e.epilogue, 1, 2, 3, x, [](uint32_t operand, int64_t position) {
    switch (operand) {
      case 3:
        EXPECT_EQ(position, 3);
        return kBias;
      case 4:
        EXPECT_EQ(position, 60 + 2 * 11 + 3);
        return kResidual;
      case 5:
        EXPECT_EQ(position, 5 + 2);
        return 0.25;
      default:
        EXPECT_EQ(position, 0);
        return kScale;
    }
  });
}

TEST(Expression, MeansWhatItSays) {
  const double x = 0.625;
  const auto gelu = [](double v) { return 0.5 * v * (1 + std::erf(v / std::sqrt(2.0))); };
  EXPECT_DOUBLE_EQ(value_of("", x), x);
  EXPECT_DOUBLE_EQ(value_of("x", x), x);
  EXPECT_DOUBLE_EQ(value_of(" ( ( x ) ) ", x), x);
  EXPECT_NEAR(value_of("gelu(x + bias) * 0.5 + residual", x), gelu(x + kBias) * 0.5 + kResidual, 1e-12);
  EXPECT_DOUBLE_EQ(value_of("1 - 2 - x", x), 1 - 2 - x);
  EXPECT_DOUBLE_EQ(value_of("8 / 2 / x", x), 4 / x);
  EXPECT_DOUBLE_EQ(value_of("2 + 3 * x", x), 2 + 3 * x);
  EXPECT_DOUBLE_EQ(value_of("-x * -x", x), x * x);
  EXPECT_DOUBLE_EQ(value_of("--x", x), x);
  EXPECT_DOUBLE_EQ(value_of("-(x + 1)", x), -(x + 1));
  EXPECT_DOUBLE_EQ(value_of("x*1e-3+.5", x), x * 1e-3 + .5);
  EXPECT_DOUBLE_EQ(value_of("row * scale", x), 0.25 * kScale);
  EXPECT_DOUBLE_EQ(value_of("select(x > 0.5, x, bias)", x), x);
  EXPECT_DOUBLE_EQ(value_of("select(x <= 0.5, x, bias)", x), kBias);
  EXPECT_DOUBLE_EQ(value_of("select(x != x, 1, select(x == x, 2, 3))", x), 2);
  EXPECT_DOUBLE_EQ(value_of("max(x, 1) + min(x, 1) + pow(x, 2)", x), 1 + x + x * x);
}

TEST(Expression, ActivationsAreTheirDefinitions) {
  std::mt19937 random(11);
  std::uniform_real_distribution<double> uniform(-9, 9);
  const auto sigmoid = [](double v) { return 1 / (1 + std::exp(-v)); };
  const auto softplus = [](double v) { return std::log1p(std::exp(v)); };
  for (int i = 0; i < 200; ++i) {
    const double x = i < 3 ? i - 1 : uniform(random);
    const auto near = [&](const char* text, double expected) {
      EXPECT_NEAR(value_of(text, x), expected, 1e-7 * (1 + std::abs(expected))) << text << " of " << x;
    };
    near("relu(x)", std::max(x, 0.0));
    near("relu6(x)", std::clamp(x, 0.0, 6.0));
    near("leaky_relu(x, 0.1)", x > 0 ? x : 0.1 * x);
    near("elu(x, 1.5)", x > 0 ? x : 1.5 * std::expm1(x));
    near("sigmoid(x)", sigmoid(x));
    near("silu(x)", x * sigmoid(x));
    near("softplus(x)", softplus(x));
    near("mish(x)", x * std::tanh(softplus(x)));
    near("gelu_tanh(x)", 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))));
    near("hardsigmoid(x)", std::clamp(x + 3, 0.0, 6.0) / 6);
    near("hardswish(x)", x * std::clamp(x + 3, 0.0, 6.0) / 6);
    near("square(x)", x * x);
    near("clamp(x, -1, 2)", std::clamp(x, -1.0, 2.0));
    near("exp(-abs(x))", std::exp(-std::abs(x)));
    near("sign(x) + floor(x) + ceil(x) + trunc(x)", (x > 0) - (x < 0) + std::floor(x) + std::ceil(x) + std::trunc(x));
  }
  EXPECT_TRUE(std::isnan(value_of("relu(x)", NAN)));
  EXPECT_EQ(value_of("softplus(x)", 1000), 1000);
}

std::string said(const std::string& epilogue) {
  const Error error = error_of([&] { lower_epilogue(problem_of(epilogue), DType::kF32); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument) << epilogue;
  return error.what();
}

TEST(Expression, SaysWhatIsWrongAndWhatThereIs) {
  const std::string operand = said("gelu(x + bais)");
  EXPECT_THAT(operand, HasSubstr("at character 10: there is no operand \"bais\""));
  EXPECT_THAT(operand, HasSubstr("x (the accumulator), bias, residual, row, scale"));
  const std::string function = said("geluu(x)");
  EXPECT_THAT(function, HasSubstr("there is no function \"geluu\""));
  EXPECT_THAT(function, HasSubstr("gelu, gelu_tanh"));
  EXPECT_THAT(said("relu(x, 1)"), HasSubstr("relu takes 1 argument, not 2"));
  EXPECT_THAT(said("clamp(x)"), HasSubstr("clamp takes 3 arguments, not 1"));
  EXPECT_THAT(said("x +"), HasSubstr("ends where a value should stand"));
  EXPECT_THAT(said("(x"), HasSubstr("\")\" is missing"));
  EXPECT_THAT(said("x)"), HasSubstr("\")\" is not expected"));
  EXPECT_THAT(said("x bias"), HasSubstr("\"b\" is not expected"));
  EXPECT_THAT(said("x $ 1"), HasSubstr("\"$\" is not expected"));
  EXPECT_THAT(said("x > 0"), HasSubstr("a condition stands where a value belongs"));
  EXPECT_THAT(said("(x > 0) + 1"), HasSubstr("a condition stands where a value belongs"));
  EXPECT_THAT(said("select(x, 1, 2)"), HasSubstr("a value stands where a condition belongs"));
  EXPECT_THAT(said("x < 1 < 2"), HasSubstr("is not expected"));
  EXPECT_THAT(said("1e99 + x"), HasSubstr("no number in the range of f32"));
  EXPECT_THAT(said("2x"), HasSubstr("no number"));
  EXPECT_THAT(said("."), HasSubstr("no number"));
  EXPECT_THAT(said("bias()"), HasSubstr("is not expected"));
  EXPECT_THAT(said(" "), HasSubstr("ends where"));
}

TEST(Expression, RefusesWhatIsTooLong) {
  EXPECT_THAT(said(std::string(5000, 'x')), HasSubstr("5000 characters"));
  EXPECT_THAT(said(std::string(500, '(') + "x" + std::string(500, ')')), HasSubstr("more than 64 levels"));
  EXPECT_THAT(said(std::string(500, '-') + "x"), HasSubstr("more than 64 levels"));
  std::string sum = "x";
  for (int i = 0; i < 500; ++i) sum += "+x";
  EXPECT_EQ(value_of(sum, 1), 501);
}

TEST(Expression, AnyBytesAreRefusedOrUnderstood) {
  std::mt19937 random(5);
  const std::string letters = "x+-*/()<>=!,. 0123456789ebiasgelu_\t\"\\\x80\xff";
  for (int i = 0; i < 3000; ++i) {
    std::string text;
    for (size_t n = random() % 24; n > 0; --n) text += letters[random() % letters.size()];
    try {
      value_of(text, 1);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    }
  }
}

TEST(Expression, ChecksOperands) {
  const auto lower = [](const Operand& o) {
    GemmProblem p = problem_of("x");
    p.operands = {o};
    p.operands[0].stride = o.stride.value_or(0);
    lower_epilogue(p, DType::kF32);
  };
  const auto error = [&](const Operand& o) { return error_of([&] { lower(o); }); };
  lower({.name = "b"});
  EXPECT_EQ(error({.name = "x"}).code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(error({.name = "b", .dtype = DType::kI64}).code(), ErrorCode::kUnsupportedType);
  EXPECT_THAT(error({.name = "b", .kind = Operand::Kind::kMatrix, .leading = 6}).what(),
              HasSubstr("smaller than a row of 7 elements"));
  EXPECT_EQ(error({.name = "b", .stride = -1}).code(), ErrorCode::kInvalidArgument);
  GemmProblem twice = problem_of("x");
  twice.operands.push_back(twice.operands[0]);
  EXPECT_THAT(error_of([&] { lower_epilogue(twice, DType::kF32); }).what(), HasSubstr("two of this name"));
}

}  // namespace
}  // namespace heddle::ops
