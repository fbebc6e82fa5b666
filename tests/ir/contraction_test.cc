#include <gtest/gtest.h>

#include <random>

#include "base/check.h"
#include "ir/reference/eval.h"

namespace heddle::ir {
namespace {

Array random_array(std::mt19937& rng, DType dtype, Shape shape) {
  Array array(dtype, std::move(shape));
  if (array.real()) {
    for (double& v : array.f()) v = std::uniform_real_distribution<double>(-1, 1)(rng);
  } else {
    const int64_t low = is_unsigned_int(dtype) ? 0 : -100;
    for (int64_t& v : array.i()) v = std::uniform_int_distribution<int64_t>(low, 100)(rng);
  }
  return array;
}

Array evaluate_op(Op op, const Attrs& attrs, std::vector<Array> inputs, bool round = false) {
  Graph graph;
  std::vector<ValueId> operands;
  for (size_t i = 0; i < inputs.size(); ++i) {
    operands.push_back(graph.parameter(fmt::format("x{}", i), {inputs[i].dtype, inputs[i].shape}));
  }
  graph.output("y", graph.emit(op, operands, attrs));
  return std::move(evaluate(graph, std::move(inputs), {.round = round, .observe = {}})[0]);
}

double at(const Array& a, int64_t i) {
  return a.real() ? a.f()[i] : static_cast<double>(a.i()[i]);
}

void expect_close(const Array& result, const std::vector<double>& expected) {
  ASSERT_EQ(result.size(), static_cast<int64_t>(expected.size()));
  for (size_t i = 0; i < expected.size(); ++i) ASSERT_NEAR(at(result, i), expected[i], 1e-9) << "element " << i;
}

Attrs dot_attrs(Ints lhs_batch, Ints rhs_batch, Ints lhs_contract, Ints rhs_contract) {
  return {{"lhs_batch", lhs_batch},
          {"rhs_batch", rhs_batch},
          {"lhs_contract", lhs_contract},
          {"rhs_contract", rhs_contract}};
}

TEST(Dot, MultipliesMatricesOfAnySize) {
  std::mt19937 rng(1);
  for (const auto& [m, k, n] : std::vector<std::array<int64_t, 3>>{
           {1, 1, 1}, {7, 13, 5}, {6, 300, 8}, {101, 257, 3}, {3, 2, 521}, {0, 4, 5}, {4, 0, 5}}) {
    const Array a = random_array(rng, DType::kF32, {m, k}), b = random_array(rng, DType::kF32, {k, n});
    std::vector<double> expected(m * n);
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        for (int64_t t = 0; t < k; ++t) expected[i * n + j] += a.f()[i * k + t] * b.f()[t * n + j];
      }
    }
    const Array y = evaluate_op(Op::kDot, dot_attrs({}, {}, {1}, {0}), {a, b});
    EXPECT_EQ(y.shape, (Shape{m, n}));
    expect_close(y, expected);
  }
}

TEST(Dot, OrdersBatchThenFreeDimensions) {
  std::mt19937 rng(2);
  // lhs [K,B,M], rhs [N,K,B]: contract K, batch B.
  const int64_t K = 3, B = 2, M = 5, N = 4;
  const Array a = random_array(rng, DType::kF64, {K, B, M}), b = random_array(rng, DType::kF64, {N, K, B});
  std::vector<double> expected;
  for (int64_t t = 0; t < B; ++t) {
    for (int64_t m = 0; m < M; ++m) {
      for (int64_t n = 0; n < N; ++n) {
        double sum = 0;
        for (int64_t k = 0; k < K; ++k) sum += a.f()[(k * B + t) * M + m] * b.f()[(n * K + k) * B + t];
        expected.push_back(sum);
      }
    }
  }
  const Array y = evaluate_op(Op::kDot, dot_attrs({1}, {2}, {0}, {1}), {a, b});
  EXPECT_EQ(y.shape, (Shape{B, M, N}));
  expect_close(y, expected);
}

TEST(Dot, BytesWidenTo32Bits) {
  std::mt19937 rng(3);
  const Array a = random_array(rng, DType::kU8, {2, 3}), b = random_array(rng, DType::kI8, {3});
  const Array y = evaluate_op(Op::kDot, dot_attrs({}, {}, {1}, {0}), {a, b});
  EXPECT_EQ(y.dtype, DType::kI32);
  for (int64_t i = 0; i < 2; ++i) {
    EXPECT_EQ(y.i()[i], a.i()[i * 3] * b.i()[0] + a.i()[i * 3 + 1] * b.i()[1] + a.i()[i * 3 + 2] * b.i()[2]);
  }
}

TEST(Dot, IntegersWrap) {
  Array a(DType::kI32, {1, 2}), b(DType::kI32, {2, 1});
  a.i() = {2147483647, 1};
  b.i() = {2, 3};
  EXPECT_EQ(evaluate_op(Op::kDot, dot_attrs({}, {}, {1}, {0}), {a, b}).i()[0], 1);
}

TEST(Dot, RefusesWrongOperands) {
  Graph graph;
  const ValueId a = graph.parameter("a", {DType::kF32, {2, 3}}), b = graph.parameter("b", {DType::kF32, {4, 5}});
  const ValueId c = graph.parameter("c", {DType::kI32, {3, 2}});
  EXPECT_THROW(graph.emit(Op::kDot, {a, b}, dot_attrs({}, {}, {1}, {0})), Error);
  EXPECT_THROW(graph.emit(Op::kDot, {a, b}, dot_attrs({}, {}, {7}, {0})), Error);
  EXPECT_THROW(graph.emit(Op::kDot, {a, b}, dot_attrs({0}, {}, {1}, {0})), Error);
  EXPECT_THROW(graph.emit(Op::kDot, {a, c}, dot_attrs({}, {}, {1}, {0})), Error);
}

struct ConvCase {
  Shape x, w;
  Ints strides, low, high, dilations, lhs_dilations;
  int64_t groups;
};

Attrs conv_attrs(const ConvCase& c, const char* layout) {
  return {{"strides", c.strides},         {"low", c.low},       {"high", c.high},
          {"dilations", c.dilations},     {"groups", c.groups}, {"lhs_dilations", c.lhs_dilations},
          {"layout", std::string(layout)}};
}

// Two spatial dimensions, straight from the definition.
std::vector<double> plain_conv(const Array& x, const Array& w, const ConvCase& c, const Shape& out) {
  const auto input = [&](int64_t n, int64_t ch, int64_t y, int64_t z) -> double {
    if (y < 0 || z < 0 || y % c.lhs_dilations[0] != 0 || z % c.lhs_dilations[1] != 0) return 0;
    y /= c.lhs_dilations[0];
    z /= c.lhs_dilations[1];
    if (y >= c.x[2] || z >= c.x[3]) return 0;
    return at(x, ((n * c.x[1] + ch) * c.x[2] + y) * c.x[3] + z);
  };
  std::vector<double> result;
  const int64_t per_group = c.w[0] / c.groups;
  for (int64_t n = 0; n < out[0]; ++n) {
    for (int64_t o = 0; o < out[1]; ++o) {
      for (int64_t y = 0; y < out[2]; ++y) {
        for (int64_t z = 0; z < out[3]; ++z) {
          double sum = 0;
          for (int64_t i = 0; i < c.w[1]; ++i) {
            for (int64_t p = 0; p < c.w[2]; ++p) {
              for (int64_t q = 0; q < c.w[3]; ++q) {
                sum += at(w, ((o * c.w[1] + i) * c.w[2] + p) * c.w[3] + q) *
                       input(n, o / per_group * c.w[1] + i, y * c.strides[0] + p * c.dilations[0] - c.low[0],
                             z * c.strides[1] + q * c.dilations[1] - c.low[1]);
              }
            }
          }
          result.push_back(sum);
        }
      }
    }
  }
  return result;
}

Array permute_4d(const Array& x, const std::array<int, 4>& perm) {
  Graph graph;
  const ValueId p = graph.parameter("x", {x.dtype, x.shape});
  graph.output("y", graph.emit(Op::kTranspose, {p}, {{"perm", Ints(perm.begin(), perm.end())}}));
  return std::move(evaluate(graph, {x})[0]);
}

TEST(Conv, FollowsTheDefinitionInBothLayouts) {
  std::mt19937 rng(4);
  const std::vector<ConvCase> cases = {
      {{1, 3, 7, 9}, {4, 3, 3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 1},
      {{2, 4, 11, 5}, {6, 2, 3, 2}, {2, 3}, {0, 2}, {1, 0}, {2, 1}, {1, 1}, 2},
      {{1, 5, 6, 6}, {5, 1, 3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 5},
      {{1, 2, 4, 3}, {3, 2, 3, 3}, {1, 1}, {2, 2}, {3, 2}, {1, 1}, {2, 3}, 1},
      {{1, 2, 6, 6}, {3, 2, 2, 2}, {1, 1}, {-1, -2}, {0, -1}, {1, 1}, {1, 1}, 1},
      {{1, 300, 5, 5}, {7, 300, 1, 1}, {1, 1}, {0, 0}, {0, 0}, {1, 1}, {1, 1}, 1},
      {{0, 2, 5, 5}, {3, 2, 2, 2}, {1, 1}, {0, 0}, {0, 0}, {1, 1}, {1, 1}, 1},
  };
  for (const ConvCase& c : cases) {
    const Array x = random_array(rng, DType::kF32, c.x), w = random_array(rng, DType::kF32, c.w);
    const Array y = evaluate_op(Op::kConv, conv_attrs(c, "nchw"), {x, w});
    expect_close(y, plain_conv(x, w, c, y.shape));
    const Array last = evaluate_op(Op::kConv, conv_attrs(c, "nhwc"), {permute_4d(x, {0, 2, 3, 1}), w});
    EXPECT_EQ(permute_4d(last, {0, 3, 1, 2}).f(), y.f());
  }
}

TEST(Conv, IntegersAndOneDimension) {
  Array x(DType::kI8, {1, 1, 4}), w(DType::kI8, {1, 1, 2});
  x.i() = {100, 100, -3, 4};
  w.i() = {100, 1};
  const ConvCase c{{}, {}, {1}, {0}, {0}, {1}, {1}, 1};
  const Array y = evaluate_op(Op::kConv, conv_attrs(c, "nchw"), {x, w});
  EXPECT_EQ(y.dtype, DType::kI32);
  EXPECT_EQ(y.i(), (std::vector<int64_t>{10100, 9997, -296}));
}

TEST(Conv, RefusesWhatDoesNotFit) {
  Graph graph;
  const ValueId x = graph.parameter("x", {DType::kF32, {1, 3, 5, 5}});
  const ValueId w = graph.parameter("w", {DType::kF32, {4, 3, 7, 7}});
  ConvCase c{{}, {}, {1, 1}, {0, 0}, {0, 0}, {1, 1}, {1, 1}, 1};
  EXPECT_THROW(graph.emit(Op::kConv, {x, w}, conv_attrs(c, "nchw")), Error);  // wider than the input
  c.low = c.high = {1, 1};
  EXPECT_NO_THROW(graph.emit(Op::kConv, {x, w}, conv_attrs(c, "nchw")));
  EXPECT_THROW(graph.emit(Op::kConv, {x, w}, conv_attrs(c, "nhwc")), Error);  // 5 channels
  c.groups = 0;
  EXPECT_THROW(graph.emit(Op::kConv, {x, w}, conv_attrs(c, "nchw")), Error);
  c.groups = 1;
  c.dilations = {int64_t{1} << 40, 1};
  EXPECT_THROW(graph.emit(Op::kConv, {x, w}, conv_attrs(c, "nchw")), Error);
}

}  // namespace
}  // namespace heddle::ir
