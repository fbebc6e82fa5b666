#pragma once

#include <map>
#include <random>
#include <string>

#include "base/file/file.h"
#include "heddle/model.h"
#include "tests/frontend/model_bytes.h"
#include "zoo/graph_builder.h"
#include "zoo/layers.h"
#include "zoo/onnx_file.h"

namespace heddle::test {

inline Tensor random_floats(const Shape& shape, uint32_t seed) {
  Tensor tensor(DType::kF32, shape);
  std::mt19937 generator(seed);
  for (float& value : tensor.mutable_values<float>()) value = std::normal_distribution<float>()(generator);
  return tensor;
}

// x f32[any,8] times a matrix -> softmax -> y f32[any,4]
inline void write_open_rows(const std::string& path) {
  onnx::GraphSpec graph;
  graph.nodes = {{"MatMul", {"x", "w"}, {"z"}}, {"Softmax", {"z"}, {"y"}, {{"axis", int64_t{-1}}}}};
  graph.inputs = {{"x", DType::kF32, {-1, 8}}};
  graph.outputs = {"y"};
  graph.initializers = {{"w", random_floats({8, 4}, 1)}};
  write_file(path, onnx::model_bytes(graph, 17));
}

// x f32[rows,8] -> linear 16, relu, linear 4, softmax -> probabilities f32[rows,4]
inline void write_mlp(const std::string& path, int64_t rows = 2, uint64_t seed = 1) {
  zoo::GraphBuilder g("mlp", 17);
  const zoo::Value x = g.input("x", DType::kF32, {rows, 8});
  const zoo::Value hidden = g.relu(zoo::linear(g, "up", x, 16));
  g.output(g.softmax(zoo::linear(g, "down", hidden, 4), -1), "probabilities");
  zoo::write_model(g.finish(), seed, int64_t{1} << 30, path);
}

// ids i64[3] -> rows of a table [10,4] -> sum; ids index the table.
inline void write_lookup(const std::string& path) {
  zoo::GraphBuilder g("lookup", 17);
  const zoo::Value ids = g.index_input("ids", 10, {3});
  g.output(zoo::embedding(g, "table", ids, 10, 4, 1.0), "rows");
  zoo::write_model(g.finish(), 1, int64_t{1} << 30, path);
}

// y = x + x over very many elements: nothing to compute, too much to hold.
inline void write_huge(const std::string& path) {
  zoo::GraphBuilder g("huge", 17);
  const zoo::Value x = g.input("x", DType::kF32, {int64_t{1} << 21, int64_t{1} << 21});
  g.output(g.add(x, x), "y");
  zoo::write_model(g.finish(), 1, int64_t{1} << 30, path);
}

}  // namespace heddle::test
