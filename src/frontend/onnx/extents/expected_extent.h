#pragma once

#include <cstddef>
#include <initializer_list>

#include "frontend/onnx/node_context.h"

namespace heddle::onnx {

// Dimension `dim` of input `input` of a node.
struct InputExtent {
  size_t input, dim;
};

// States that the extent of dimension `total` should equal the sum of the extents of dimensions `parts`. Unknown
// extents are chosen accordingly.
void expect_extent(NodeContext& ctx, InputExtent total, std::initializer_list<InputExtent> parts);

}  // namespace heddle::onnx
