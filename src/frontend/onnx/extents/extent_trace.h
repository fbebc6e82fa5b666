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

// The input's dimension whose extent a value has in `dim`, found through nodes that compute elementwise, move
// dimensions or add some; nullopt where other nodes lie between.
std::optional<InputDim> input_dim_of(const ir::Graph& graph, ir::ValueId v, size_t dim);

}  // namespace heddle::onnx
