#include "passes/rewrite/view.h"

namespace heddle::passes {
namespace {

// Splits and merges dimensions in step: a run of old dimensions with the element count of a run of new ones must be
// contiguous in itself (each stride the product of the extents and stride after it).
std::optional<StridedView> reshape(const StridedView& view, const Shape& to) {
  StridedView result{to, Ints(to.size(), 0), view.offset};
  if (element_count(to) == 0) return result;
  Shape from;
  Ints strides;
  for (size_t d = 0; d < view.shape.size(); ++d) {
    if (view.shape[d] == 1) continue;
    from.push_back(view.shape[d]);
    strides.push_back(view.strides[d]);
  }
  size_t i = 0, j = 0;
  while (i < from.size()) {
    size_t i_end = i + 1, j_end = j;
    int64_t old_count = from[i], new_count = 1;
    while (old_count != new_count || j_end == j) {
      if (new_count < old_count || j_end == j) {
        new_count *= to[j_end++];
      } else {
        old_count *= from[i_end++];
      }
    }
    for (size_t d = i; d + 1 < i_end; ++d) {
      if (strides[d] != strides[d + 1] * from[d + 1]) return std::nullopt;
    }
    int64_t stride = strides[i_end - 1];
    for (size_t d = j_end; d-- > j;) {
      result.strides[d] = stride;
      stride *= to[d];
    }
    i = i_end;
    j = j_end;
  }
  return result;
}

}  // namespace

StridedView StridedView::dense(const Shape& shape) {
  StridedView view{shape, Ints(shape.size(), 1), 0};
  for (size_t d = shape.size(); d-- > 1;) view.strides[d - 1] = view.strides[d] * shape[d];
  return view;
}

std::optional<StridedView> apply(const StridedView& view, const ir::Node& node) {
  StridedView result = view;
  switch (node.op) {
    case ir::Op::kTranspose: {
      const Ints& perm = node.attrs.ints("perm");
      for (size_t d = 0; d < perm.size(); ++d) {
        result.shape[d] = view.shape[static_cast<size_t>(perm[d])];
        result.strides[d] = view.strides[static_cast<size_t>(perm[d])];
      }
      return result;
    }
    case ir::Op::kBroadcast: {
      const Ints& dims = node.attrs.ints("dims");
      result = {node.attrs.ints("shape"), {}, view.offset};
      result.strides.assign(result.shape.size(), 0);
      for (size_t d = 0; d < dims.size(); ++d) {
        if (view.shape[d] != 1) result.strides[static_cast<size_t>(dims[d])] = view.strides[d];
      }
      return result;
    }
    case ir::Op::kSlice: {
      const Ints &starts = node.attrs.ints("starts"), &limits = node.attrs.ints("limits"),
                 &steps = node.attrs.ints("strides");
      for (size_t d = 0; d < starts.size(); ++d) {
        result.offset += starts[d] * view.strides[d];
        result.shape[d] = limits[d] == starts[d] ? 0 : (limits[d] - starts[d] - 1) / steps[d] + 1;
        result.strides[d] = view.strides[d] * steps[d];
      }
      return result;
    }
    case ir::Op::kReverse: {
      for (const int64_t dim : node.attrs.ints("dims")) {
        const auto d = static_cast<size_t>(dim);
        result.offset += (view.shape[d] - 1) * view.strides[d];
        result.strides[d] = -view.strides[d];
      }
      return result;
    }
    case ir::Op::kReshape:
      return reshape(view, node.attrs.ints("shape"));
    default:
      return std::nullopt;
  }
}

bool is_constant_view(const ir::Graph& graph, ir::ValueId v) {
  const ir::Node* node = &graph.producer(v);
  while (node->op == Op::kCast || node->op == Op::kReshape || node->op == Op::kTranspose) {
    node = &graph.producer(node->inputs[0]);
  }
  return node->op == Op::kConstant;
}

bool is_packed_weights(const ir::Graph& graph, ir::ValueId v) {
  const ir::Node* node = &graph.producer(v);
  while (node->op == Op::kTranspose) node = &graph.producer(node->inputs[0]);
  return node->op == Op::kDequantize;
}

}  // namespace heddle::passes
