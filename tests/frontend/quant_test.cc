#include <gtest/gtest.h>

#include <cmath>

#include "model_bytes.h"

namespace heddle::onnx {
namespace {

Tensor bytes(Shape shape, const std::vector<uint8_t>& values) {
  return Tensor::of<uint8_t>(DType::kU8, std::move(shape), std::span(values));
}
Tensor chars(Shape shape, const std::vector<int8_t>& values) {
  return Tensor::of<int8_t>(DType::kI8, std::move(shape), std::span(values));
}

TEST(Quantize, RoundsHalfToEvenAndSaturates) {
  const GraphSpec graph{{{"QuantizeLinear", {"x", "s", "z"}, {"y"}}},
                        {{"x", DType::kF32, {6}}},
                        {"y"},
                        {{"s", floats({}, {2})}, {"z", bytes({}, {10})}}};
  const auto y = run_spec(graph, {{"x", floats({6}, {1, 3, -1, 1000, -1000, 4})}}).at("y");
  EXPECT_EQ(y.dtype, DType::kU8);
  EXPECT_EQ(y.i(), (std::vector<int64_t>{10, 12, 10, 255, 0, 12}));
}

TEST(Quantize, ScalesPerAxisAndPerBlock) {
  const std::vector<float> x = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  GraphSpec graph{{{"QuantizeLinear", {"x", "s"}, {"y"}, {{"axis", int64_t{0}}, {"output_dtype", int64_t{3}}}}},
                  {{"x", DType::kF32, {2, 5}}},
                  {"y"},
                  {{"s", floats({2}, {1, 2})}}};
  EXPECT_EQ(run_spec(graph, {{"x", floats({2, 5}, x)}}).at("y").i(),
            (std::vector<int64_t>{1, 2, 3, 4, 5, 3, 4, 4, 4, 5}));
  // Blocks of two along axis 1; the last one is short.
  graph.nodes[0].attributes = {{"axis", int64_t{1}}, {"block_size", int64_t{2}}, {"output_dtype", int64_t{3}}};
  graph.initializers["s"] = floats({2, 3}, {1, 2, 5, 1, 1, 10});
  EXPECT_EQ(run_spec(graph, {{"x", floats({2, 5}, x)}}).at("y").i(),
            (std::vector<int64_t>{1, 2, 2, 2, 1, 6, 7, 8, 9, 1}));
  graph.initializers["s"] = floats({2, 2}, {1, 2, 5, 1});
  EXPECT_THROW(run_spec(graph, {{"x", floats({2, 5}, x)}}), Error);
}

TEST(Dequantize, SubtractsTheZeroPointWithoutWrapping) {
  const GraphSpec graph{{{"DequantizeLinear", {"x", "s", "z"}, {"y"}}},
                        {{"x", DType::kU8, {3}}},
                        {"y"},
                        {{"s", floats({}, {0.5})}, {"z", bytes({}, {200})}}};
  EXPECT_EQ(run_spec(graph, {{"x", bytes({3}, {0, 200, 255})}}).at("y").f(), (std::vector<double>{-100, 0, 27.5}));
}

TEST(DynamicQuantize, CoversTheRangeAndZero) {
  const GraphSpec graph{
      {{"DynamicQuantizeLinear", {"x"}, {"y", "s", "z"}}}, {{"x", DType::kF32, {3}}}, {"y", "s", "z"}};
  const auto results = run_spec(graph, {{"x", floats({3}, {51, 102, 255})}});  // the range is [0, 255]
  EXPECT_EQ(results.at("y").i(), (std::vector<int64_t>{51, 102, 255}));
  EXPECT_EQ(results.at("s").f()[0], 1);
  EXPECT_EQ(results.at("z").i()[0], 0);
  const auto none = run_spec(graph, {{"x", floats({3}, {0, 0, 0})}});
  EXPECT_EQ(none.at("y").i(), (std::vector<int64_t>{0, 0, 0}));
}

// The range of values that are never negative starts at 0.
TEST(DynamicQuantize, OfRelusHasTheZeroPointZero) {
  const GraphSpec graph{{{"Relu", {"x"}, {"r"}}, {"DynamicQuantizeLinear", {"r"}, {"y", "s", "z"}}},
                        {{"x", DType::kF32, {4}}},
                        {"y", "s", "z"}};
  const auto results = run_spec(graph, {{"x", floats({4}, {-7, 102, 510, -0.0})}});
  EXPECT_EQ(results.at("y").i(), (std::vector<int64_t>{0, 51, 255, 0}));
  EXPECT_EQ(results.at("s").f()[0], 2);
  EXPECT_EQ(results.at("z").i()[0], 0);
  EXPECT_EQ(run_spec(graph, {{"x", floats({4}, {-1, -2, -3, -4})}}).at("s").f()[0], 1);
  EXPECT_EQ(run_spec(graph, {{"x", floats({4}, {1, NAN, 2, 3})}}).at("z").i()[0], 0);
}

TEST(QLinear, ConvolutionSubtractsBothZeroPoints) {
  // One pixel row [5, 7, 9] - 5 by weights [1, 2] - 1 = [0, 1], padded by a real zero: [0, 2, 4, 0] shifted.
  const GraphSpec graph{
      {{"QLinearConv", {"x", "xs", "xz", "w", "ws", "wz", "ys", "yz"}, {"y"}, {{"pads", std::vector<int64_t>{0, 1}}}}},
      {{"x", DType::kU8, {1, 1, 3}}},
      {"y"},
      {{"xs", floats({}, {1})},
       {"xz", bytes({}, {5})},
       {"w", bytes({1, 1, 2}, {1, 2})},
       {"ws", floats({}, {0.5})},
       {"wz", bytes({}, {1})},
       {"ys", floats({}, {0.25})},
       {"yz", bytes({}, {3})}}};
  EXPECT_EQ(run_spec(graph, {{"x", bytes({1, 1, 3}, {5, 7, 9})}}).at("y").i(), (std::vector<int64_t>{7, 11, 3}));
}

TEST(QLinear, IntegerMatmulTakesZeroPointsPerRowAndColumn) {
  const GraphSpec graph{{{"MatMulInteger", {"a", "b", "az", "bz"}, {"y"}}},
                        {{"a", DType::kI8, {2, 2}}, {"b", DType::kU8, {2, 2}}},
                        {"y"},
                        {{"az", chars({2}, {1, -1})}, {"bz", bytes({2}, {0, 2})}}};
  const auto y = run_spec(graph, {{"a", chars({2, 2}, {1, 2, 3, 4})}, {"b", bytes({2, 2}, {1, 2, 3, 255})}}).at("y");
  EXPECT_EQ(y.dtype, DType::kI32);
  EXPECT_EQ(y.i(), (std::vector<int64_t>{3, 253, 19, 1265}));
}

}  // namespace
}  // namespace heddle::onnx
