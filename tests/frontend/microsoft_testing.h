#pragma once

#include <gmock/gmock.h>

#include <random>

#include "model_bytes.h"

// Nodes of ONNX Runtime's operators in models of a few nodes.
namespace heddle::onnx {

using Arrays = std::map<std::string, ir::Array>;
using Tensors = std::map<std::string, Tensor>;
using Attributes = std::map<std::string, AttrSpec>;

inline Tensor random(Shape shape) {
  static std::mt19937 engine(23);
  std::vector<float> values(static_cast<size_t>(element_count(shape)));
  for (float& v : values) v = std::uniform_real_distribution<float>(-1, 1)(engine);
  return floats(std::move(shape), values);
}
inline Tensor ints(Shape shape, const std::vector<int32_t>& values) {
  return Tensor::of<int32_t>(DType::kI32, std::move(shape), std::span(values));
}
inline Tensor bytes(Shape shape, const std::vector<uint8_t>& values) {
  return Tensor::of<uint8_t>(DType::kU8, std::move(shape), std::span(values));
}
inline Tensor chars(Shape shape, const std::vector<int8_t>& values) {
  return Tensor::of<int8_t>(DType::kI8, std::move(shape), std::span(values));
}

// Part i of three equal ones along the last dimension.
inline Tensor third(const Tensor& x, int64_t i) {
  Shape shape = x.shape();
  const int64_t width = shape.back() /= 3;
  std::vector<float> values;
  for (int64_t row = 0; row < element_count(shape) / width; ++row) {
    const auto from = x.values<float>().begin() + (row * 3 + i) * width;
    values.insert(values.end(), from, from + width);
  }
  return floats(shape, values);
}

inline NodeSpec microsoft(std::string op, std::vector<std::string> inputs, std::vector<std::string> outputs,
                          Attributes attributes = {}) {
  return {std::move(op), std::move(inputs), std::move(outputs), std::move(attributes), "com.microsoft"};
}

// The outputs of these nodes; inputs that hold integers of shapes are initializers.
inline Arrays run(std::vector<NodeSpec> nodes, const Tensors& inputs, std::vector<std::string> outputs,
                  const Tensors& initializers = {}, int64_t opset = 23) {
  GraphSpec graph{std::move(nodes), {}, std::move(outputs), initializers};
  for (const auto& [name, value] : inputs) graph.inputs.push_back({name, value.dtype(), value.shape()});
  return run_spec(graph, inputs, opset);
}

inline void expect_near(const ir::Array& a, const ir::Array& b, double bound = 1e-6) {
  ASSERT_EQ(a.shape, b.shape);
  EXPECT_THAT(a.f(), ::testing::Pointwise(::testing::DoubleNear(bound), b.f()));
}

}  // namespace heddle::onnx
