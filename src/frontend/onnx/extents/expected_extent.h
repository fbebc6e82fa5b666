#pragma once

#include <cstddef>
#include <initializer_list>

#include "frontend/onnx/node_context.h"

namespace heddle::onnx {

// A dimension of an input of a node.
struct InputExtent {
  size_t input, dim;
};

// States that the extent of dimension `total` should be the sum of the extents of dimensions `parts`, all of inputs of
// a node. Open extents are chosen accordingly.
void expect_extent(NodeContext& ctx, InputExtent total, std::initializer_list<InputExtent> parts);

}  // namespace heddle::onnx
