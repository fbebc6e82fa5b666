#pragma once

#include <cstddef>
#include <initializer_list>

#include "frontend/onnx/node_context.h"

namespace heddle::onnx {

// A dimension of an input of a node.
struct InputExtent {
  size_t input, dim;
};

// States that a dimension of a node's input should be as long as the given dimensions of its inputs together. Open
// extents are chosen accordingly.
void expect_extent(NodeContext& ctx, InputExtent total, std::initializer_list<InputExtent> parts);

}  // namespace heddle::onnx
