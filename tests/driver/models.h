#pragma once

#include <map>
#include <string>

#include "heddle/model.h"
#include "zoo/graph_builder.h"
#include "zoo/layers.h"
#include "zoo/onnx_file.h"

namespace heddle::test {

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
