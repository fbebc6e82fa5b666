#include "passes/contraction/join_columns.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace heddle::passes {
namespace {

struct Part {
  const Tensor& matrix;
  int64_t first, count;
  float factor;
};

// Copies `bytes` bytes. If the factor is not 1, they are floats, which it multiplies.
void copy(const std::byte* from, std::byte* to, int64_t bytes, float factor) {
  if (factor == 1) {
    std::memcpy(to, from, static_cast<size_t>(bytes));
    return;
  }
  const auto* values = reinterpret_cast<const float*>(from);
  std::transform(values, values + bytes / static_cast<int64_t>(sizeof(float)), reinterpret_cast<float*>(to),
                 [&](float v) { return v * factor; });
}

Tensor join(const std::vector<Part>& parts, size_t dim) {
  const Tensor& like = parts.front().matrix;
  Shape shape = like.shape();
  shape[dim] = 0;
  for (const Part& part : parts) shape[dim] += part.count;
  Tensor all = Tensor::unfilled(like.dtype(), shape);
  const int64_t rows = dim == 0 ? 1 : shape[0];
  const int64_t column = static_cast<int64_t>(size_of(like.dtype())) * (dim == 0 ? shape[1] : 1);
  auto* to = static_cast<std::byte*>(all.mutable_data());
  for (int64_t row = 0; row < rows; ++row) {
    for (const Part& part : parts) {
      const auto* from = static_cast<const std::byte*>(part.matrix.data());
      copy(from + (row * part.matrix.shape()[dim] + part.first) * column, to, part.count * column, part.factor);
      to += part.count * column;
    }
  }
  return all;
}

}  // namespace

ValueId join_columns(ir::Rewriter& r, const ir::Graph& graph, const std::vector<WeightColumns>& parts, size_t dim) {
  const auto joined = [&](const auto& constant_of, size_t along) {
    std::vector<Part> all;
    for (const WeightColumns& p : parts) all.push_back({*constant_of(p), p.first, p.count, p.factor});
    return r.constant(join(all, along));
  };
  const Node& first = graph.producer(parts.front().weights);
  if (first.op == Op::kConstant) {
    return joined([&](const WeightColumns& p) { return graph.constant_of(p.weights); }, dim);
  }
  // The columns of the product are rows of the integers, scales and zero points.
  std::vector<ValueId> operands;
  for (size_t i = 0; i < first.inputs.size(); ++i) {
    operands.push_back(
        joined([&](const WeightColumns& p) { return graph.constant_of(graph.producer(p.weights).inputs[i]); }, 0));
  }
  return r.emit(Op::kDequantize, std::move(operands), first.attrs);
}

}  // namespace heddle::passes
