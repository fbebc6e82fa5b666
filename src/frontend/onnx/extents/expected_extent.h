#pragma once

#include <cstddef>
#include <initializer_list>

#include "frontend/onnx/node_context.h"

namespace heddle::onnx {

// A dimension of an input of a node.
struct InputExtent {
  size_t input, dim;
};

// Says that a dimension of an input of the node should be as long as these dimensions of inputs together. Where the
// model leaves extents open they are chosen like that.
void expect_extent(NodeContext& ctx, InputExtent total, std::initializer_list<InputExtent> parts);

}  // namespace heddle::onnx
