#include "frontend/onnx/extents/extent_trace.h"

#include <algorithm>

namespace heddle::onnx {
namespace {

constexpr int kMostTraced = 64;

// For a reshape that only inserts or removes dimensions of extent 1.
std::optional<size_t> dim_before_reshape(const Shape& from, const Shape& to, size_t dim) {
  Shape before, after;
  const auto not_one = [](int64_t extent) { return extent != 1; };
  std::copy_if(from.begin(), from.end(), std::back_inserter(before), not_one);
  std::copy_if(to.begin(), to.end(), std::back_inserter(after), not_one);
  if (before != after || to[dim] == 1) return std::nullopt;
  auto place = std::count_if(to.begin(), to.begin() + static_cast<int64_t>(dim), not_one);
  for (size_t i = 0; i < from.size(); ++i) {
    if (not_one(from[i]) && place-- == 0) return i;
  }
  return std::nullopt;
}

// The dimension of operand `i` that has the extent.
std::optional<size_t> dim_of_operand(const ir::Graph& graph, const ir::Node& node, size_t i, size_t dim) {
  const Shape &from = graph.shape(node.inputs[i]), &to = graph.shape(node.outputs[0]);
  switch (node.op) {
    case ir::Op::kBroadcast: {
      const ir::Ints& dims = node.attrs.ints("dims");
      const auto at = std::find(dims.begin(), dims.end(), static_cast<int64_t>(dim));
      if (at == dims.end()) return std::nullopt;
      return static_cast<size_t>(at - dims.begin());
    }
    case ir::Op::kTranspose:
      return static_cast<size_t>(node.attrs.ints("perm")[dim]);
    case ir::Op::kReshape:
      return dim_before_reshape(from, to, dim);
    default:
      break;
  }
  const ir::OpClass kind = ir::class_of(node.op);
  const bool elementwise = kind == ir::OpClass::kUnary || kind == ir::OpClass::kBinary || kind == ir::OpClass::kTernary;
  return elementwise || node.op == ir::Op::kSlice ? std::optional(dim) : std::nullopt;
}

std::optional<InputDim> trace(const ir::Graph& graph, ir::ValueId v, size_t dim, int& left) {
  const ir::Node& node = graph.producer(v);
  if (node.op == ir::Op::kParameter) return InputDim{v, dim};
  if (--left < 0) return std::nullopt;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const std::optional<size_t> before = dim_of_operand(graph, node, i, dim);
    const Shape& from = graph.shape(node.inputs[i]);
    if (!before || *before >= from.size() || from[*before] != graph.shape(v)[dim]) continue;
    if (auto found = trace(graph, node.inputs[i], *before, left)) return found;
  }
  return std::nullopt;
}

}  // namespace

std::optional<InputDim> input_dim_of(const ir::Graph& graph, ir::ValueId v, size_t dim) {
  int left = kMostTraced;
  return trace(graph, v, dim, left);
}

}  // namespace heddle::onnx
