#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "ir/graph.h"

namespace heddle::onnx {

// A dimension of a graph input.
struct InputDim {
  ir::ValueId parameter;
  size_t dim;
};

// Finds the dimension of a graph input that determines the extent of dimension `dim` of `v`. Traces the extent back
// through elementwise nodes and nodes that move or add dimensions. Returns nullopt if there is any other node on the
// way.
std::optional<InputDim> input_dim_of(const ir::Graph& graph, ir::ValueId v, size_t dim);

}  // namespace heddle::onnx
