#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "ir/graph.h"

namespace heddle::onnx {

// A dimension of an input of a graph.
struct InputDim {
  ir::ValueId parameter;
  size_t dim;
};

// The graph input dimension whose extent equals that of dimension `dim` of `v`. It is traced through elementwise nodes
// and nodes that move or add dimensions; nullopt if other nodes lie between.
std::optional<InputDim> input_dim_of(const ir::Graph& graph, ir::ValueId v, size_t dim);

}  // namespace heddle::onnx
