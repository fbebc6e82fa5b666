#pragma once

#include <optional>

#include "passes/names.h"

namespace heddle::passes {

// A dense tensor accessed through layout ops. Element (i0, i1, ...) is at offset + sum(i * stride), in elements.
struct StridedView {
  Shape shape;
  ir::Ints strides;
  int64_t offset = 0;

  static StridedView dense(const Shape& shape);
};

// The view after applying a transpose, reshape, broadcast, slice or reverse node. nullopt if strides cannot express it.
std::optional<StridedView> apply(const StridedView& view, const ir::Node& node);

// True if a value is a constant that may have been cast, reshaped or transposed.
bool is_constant_view(const ir::Graph& graph, ir::ValueId v);

// True if a value is weights of few bits that may have been transposed. Products read them packed, and as a whole.
bool is_packed_weights(const ir::Graph& graph, ir::ValueId v);

}  // namespace heddle::passes
