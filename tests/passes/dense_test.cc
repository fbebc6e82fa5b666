#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <random>

#include "ir/reference/eval.h"
#include "ir/reference/scalar.h"
#include "ir/text/text.h"
#include "passes/simplify/constant_kernels.h"

namespace heddle::passes {
namespace {

Tensor random_tensor(DType dtype, const Shape& shape, uint32_t seed) {
  std::mt19937 random(seed);
  Tensor tensor(dtype, shape);
  for (int64_t i = 0; i < tensor.size(); ++i) {
    ir::set_real(tensor, i, std::uniform_real_distribution<double>(-100, 100)(random));
  }
  return tensor;
}

TEST(Dense, ConversionsAgreeWithTheScalarOnes) {
  std::vector<double> values = {0,
                                -0.0,
                                1,
                                -1,
                                65504,
                                65519,
                                65520,
                                65536,
                                1e-8,
                                5.9604644775390625e-8,
                                2.9802322387695312e-8,
                                2.98023224e-8,
                                6.097555e-5,
                                6.1035156e-5,
                                1e38,
                                3.4e38,
                                1e-40,
                                0.1,
                                1 / 3.0,
                                std::numeric_limits<double>::infinity(),
                                -std::numeric_limits<double>::infinity()};
  std::mt19937 random(3);
  for (int i = 0; i < 20000; ++i) {
    values.push_back(
        std::ldexp(std::uniform_real_distribution<double>(-2, 2)(random), static_cast<int>(random() % 60) - 40));
  }
  Tensor wide(DType::kF32, {static_cast<int64_t>(values.size())});
  for (size_t i = 0; i < values.size(); ++i) ir::set_real(wide, static_cast<int64_t>(i), values[i]);
  for (DType type : {DType::kF16, DType::kBF16}) {
    const Tensor narrow = *converted(wide, type);
    const Tensor back = *converted(narrow, DType::kF32);
    for (int64_t i = 0; i < wide.size(); ++i) {
      const double expected = round_to(type, ir::real_at(wide, i));
      ASSERT_EQ(ir::real_at(narrow, i), expected) << ir::real_at(wide, i);
      ASSERT_EQ(ir::real_at(back, i), expected);
      ASSERT_EQ(std::signbit(ir::real_at(back, i)), std::signbit(expected));
    }
  }
  for (DType type : {DType::kF16, DType::kBF16}) {
    const Tensor nan = *converted(ir::splat(DType::kF32, {1}, std::nan("")), type);
    EXPECT_TRUE(std::isnan(ir::real_at(nan, 0)));
    EXPECT_TRUE(std::isnan(ir::real_at(*converted(nan, DType::kF32), 0)));
  }
}

TEST(Dense, IntegersConvertToF32) {
  for (DType type : {DType::kI8, DType::kU8, DType::kI32, DType::kI64}) {
    Tensor t(type, {3});
    for (int64_t i = 0; i < 3; ++i) ir::set_integer(t, i, i * 60);
    const Tensor f = *converted(t, DType::kF32);
    for (int64_t i = 0; i < 3; ++i) EXPECT_EQ(ir::real_at(f, i), static_cast<double>(i * 60));
  }
}

// Every permutation of a tensor of rank 4 with odd extents, in element sizes of 1 to 8 bytes.
TEST(Dense, TransposesOfEveryKind) {
  for (DType type : {DType::kI8, DType::kBF16, DType::kF32, DType::kF64}) {
    for (const Shape& shape : {Shape{3, 5, 1, 7}, Shape{2, 33, 35, 1}, Shape{7, 45, 53, 2}, Shape{0, 2, 3, 4}}) {
      const Tensor x = random_tensor(type, shape, 5);
      ir::Ints perm = {0, 1, 2, 3};
      do {
        const Tensor y = transposed(x, perm);
        int64_t i = 0;
        const auto& s = y.shape();
        for (int64_t a = 0; a < s[0]; ++a) {
          for (int64_t b = 0; b < s[1]; ++b) {
            for (int64_t c = 0; c < s[2]; ++c) {
              for (int64_t d = 0; d < s[3]; ++d, ++i) {
                int64_t at[4];
                at[perm[0]] = a, at[perm[1]] = b, at[perm[2]] = c, at[perm[3]] = d;
                const int64_t j = ((at[0] * shape[1] + at[1]) * shape[2] + at[2]) * shape[3] + at[3];
                ASSERT_EQ(ir::real_at(y, i), ir::real_at(x, j));
              }
            }
          }
        }
      } while (std::next_permutation(perm.begin(), perm.end()));
    }
  }
}

TEST(Dense, ViewsWithStepsOffsetsAndRepeats) {
  const Tensor x = random_tensor(DType::kF32, {5, 7}, 9);
  const Tensor y = gather_view(x, {{2, 3, 2}, {14, 0, 2}, 8});  // rows 1 and 3, three times, columns 1 and 3
  int64_t i = 0;
  for (int64_t a = 0; a < 2; ++a) {
    for (int64_t b = 0; b < 3; ++b) {
      for (int64_t c = 0; c < 2; ++c, ++i) {
        EXPECT_EQ(ir::real_at(y, i), ir::real_at(x, 8 + 14 * a + 2 * c));
      }
    }
  }
}

TEST(Dense, ReversalsAndPaddingAreThoseOfTheReference) {
  for (const char* type : {"i8", "bf16", "f32", "i64"}) {
    const std::string text = fmt::format(R"(graph(%x: {}[3,1,4], %v: {}[]) {{
      %r = reverse(%x) {{dims = [0,2]}}
      %p = pad(%r, %v) {{low = [1,0,2], high = [0,2,1], mode = "constant"}}
      return "r" = %r, "p" = %p }})",
                                         type, type);
    const ir::Graph graph = ir::parse(text);
    const DType dtype = graph.dtype(0);
    const Tensor x = random_tensor(dtype, {3, 1, 4}, 3), v = random_tensor(dtype, {}, 4);
    const auto expected = ir::evaluate(graph, std::vector{ir::to_array(x), ir::to_array(v)});
    const Tensor r = *evaluate_dense(graph.producer(graph.outputs()[0].value), std::vector{x});
    const Tensor p = *evaluate_dense(graph.producer(graph.outputs()[1].value), std::vector{r, v});
    EXPECT_EQ(ir::to_array(r).shape, expected[0].shape);
    for (int64_t i = 0; i < r.size(); ++i) ASSERT_EQ(ir::real_at(r, i), ir::real_at(ir::to_tensor(expected[0]), i));
    ASSERT_EQ(p.shape(), expected[1].shape);
    for (int64_t i = 0; i < p.size(); ++i) ASSERT_EQ(ir::real_at(p, i), ir::real_at(ir::to_tensor(expected[1]), i));
  }
}

// Products of bytes use column sums of weights as corrections.
TEST(Dense, ArithmeticOfIntegersIsThatOfTheReference) {
  const ir::Graph graph = ir::parse(R"(graph(%x: u8[5,6,7], %z: i32[5,6,7]) {
    %w = cast(%x) {to = i32}
    %d = sub(%w, %z)
    %m = mul(%d, %w)
    %a = add(%m, %z)
    %b = cast(%a) {to = i8}
    %n = cast(%a) {to = i16}
    %first = reduce(%a) {kind = "sum", dims = [0]}
    %middle = reduce(%a) {kind = "sum", dims = [1]}
    %last = reduce(%a) {kind = "sum", dims = [1,2]}
    return "b" = %b, "n" = %n, "first" = %first, "middle" = %middle, "last" = %last
  })");
  const std::vector<Tensor> inputs = {random_tensor(DType::kU8, {5, 6, 7}, 7),
                                      random_tensor(DType::kI32, {5, 6, 7}, 8)};
  std::map<ir::ValueId, Tensor> values;
  for (size_t i = 0; i < inputs.size(); ++i) values[graph.inputs()[i].value] = inputs[i];
  for (const ir::Node& node : graph.nodes()) {
    if (node.op == ir::Op::kParameter) continue;
    std::vector<Tensor> operands;
    for (const ir::ValueId v : node.inputs) operands.push_back(values.at(v));
    const std::optional<Tensor> made = evaluate_dense(node, operands);
    ASSERT_TRUE(made) << to_string(node.op);
    values[node.outputs[0]] = *made;
  }
  const auto expected = ir::evaluate(graph, std::vector{ir::to_array(inputs[0]), ir::to_array(inputs[1])});
  for (size_t o = 0; o < expected.size(); ++o) {
    const ir::Array actual = ir::to_array(values.at(graph.outputs()[o].value));
    EXPECT_EQ(actual.shape, expected[o].shape);
    EXPECT_EQ(actual.i(), expected[o].i()) << graph.outputs()[o].name;
  }
}

TEST(View, ReshapesThatStridesCannotExpressAreRefused) {
  ir::Graph graph;
  const auto x = graph.parameter("x", {DType::kF32, {4, 6}});
  const auto t = graph.emit(ir::Op::kTranspose, {x}, {{"perm", ir::Ints{1, 0}}});
  const auto merged = graph.emit(ir::Op::kReshape, {t}, {{"shape", ir::Ints{24}}});
  const auto split = graph.emit(ir::Op::kReshape, {t}, {{"shape", ir::Ints{2, 3, 1, 4}}});
  const StridedView view = *apply(StridedView::dense({4, 6}), graph.producer(t));
  EXPECT_EQ(view.strides, (ir::Ints{1, 6}));
  EXPECT_FALSE(apply(view, graph.producer(merged)).has_value());
  EXPECT_EQ(apply(view, graph.producer(split))->strides[0], 3);
  EXPECT_EQ(apply(view, graph.producer(split))->strides[1], 1);
  EXPECT_EQ(apply(view, graph.producer(split))->strides[3], 6);
}

}  // namespace
}  // namespace heddle::passes
