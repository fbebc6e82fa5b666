#include "passes/quantized/widen_weights.h"

#include <algorithm>
#include <vector>

#include "base/clones.h"
#include "base/narrow_float.h"
#include "ir/ops/parallel.h"
#include "ir/packed_words.h"
#include "ir/reference/scalar.h"
#include "ir/rewrite.h"

namespace heddle::passes {
namespace {

HEDDLE_CLONES void scale(const uint8_t* q, int64_t count, float zero, float factor, float* to) {
  for (int64_t i = 0; i < count; ++i) to[i] = (static_cast<float>(q[i]) - zero) * factor;
}

HEDDLE_CLONES void store_as(DType dtype, const float* from, int64_t count, void* to) {
  if (dtype == DType::kF32) std::copy_n(from, count, static_cast<float*>(to));
  if (dtype == DType::kF16) {
    for (int64_t i = 0; i < count; ++i) static_cast<uint16_t*>(to)[i] = to_f16(from[i]);
  }
  if (dtype == DType::kBF16) {
    for (int64_t i = 0; i < count; ++i) static_cast<uint16_t*>(to)[i] = to_bf16(from[i]);
  }
}

std::vector<float> floats_of(const Tensor& tensor) {
  std::vector<float> values(static_cast<size_t>(tensor.size()));
  for (int64_t i = 0; i < tensor.size(); ++i)
    values[static_cast<size_t>(i)] = static_cast<float>(ir::real_at(tensor, i));
  return values;
}

bool widens(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16;
}

// The products that read a value, perhaps transposed or cast.
void report_readers(const ir::Graph& graph, const std::vector<std::vector<NodeId>>& users, ValueId v,
                    QuantisedProducts& products) {
  for (std::vector<ValueId> open{v}; !open.empty();) {
    const ValueId at = open.back();
    open.pop_back();
    for (const NodeId id : users[at]) {
      const Node& node = graph.node(id);
      if (node.op == Op::kDot) read_as_floats(products, ir::text_of_node(graph, node));
      if (node.op == Op::kTranspose || node.op == Op::kCast) open.push_back(node.outputs[0]);
    }
  }
}

// The constant weights that the kernels of a graph widen in memory.
std::vector<bool> widened_in_runs(const ir::Graph& graph, const PassContext& context) {
  std::vector<bool> found(graph.nodes().size(), false);
  int64_t bytes = 0;
  for (const ir::Group& group : context.group(graph).groups) {
    if (group.kind == ir::GroupKind::kContraction || group.kind == ir::GroupKind::kBackToBack) continue;
    for (const NodeId id : group.nodes) {
      const Node& node = graph.node(id);
      const auto is_constant = [&](ValueId v) { return graph.constant_of(v) != nullptr; };
      if (node.op != Op::kDequantize || !widens(graph.dtype(node.outputs[0])) ||
          !std::all_of(node.inputs.begin(), node.inputs.end(), is_constant)) {
        continue;
      }
      found[id] = true;
      const ValueId result = node.outputs[0];
      bytes += element_count(graph.shape(result)) * static_cast<int64_t>(size_of(graph.dtype(result)));
    }
  }
  if (bytes > context.target.memory_bytes() / 2) found.assign(found.size(), false);
  return found;
}

}  // namespace

Tensor widened(const Node& node, std::span<const Tensor> operands) {
  const Tensor &words = operands[0], &scales = operands[1];
  const int64_t bits = node.attrs.integer("bits"), block = node.attrs.integer("block"), k = node.attrs.integer("k");
  const int64_t rows = words.shape()[0], pitch = words.shape()[1], blocks = scales.shape()[1];
  const std::vector<float> factors = floats_of(scales);
  const std::vector<float> third = operands.size() == 3 ? floats_of(operands[2]) : std::vector<float>();
  const bool is_table = operands.size() == 3 && operands[2].shape().size() == 1;
  const DType dtype = node.attrs.dtype("dtype");
  Tensor result = Tensor::unfilled(dtype, {rows, k});
  const auto row_bytes = k * static_cast<int64_t>(size_of(dtype));
  auto* to = static_cast<std::byte*>(result.mutable_data());
  ir::parallel_for(rows, k, [&](int64_t begin, int64_t end) {
    std::vector<uint8_t> q(static_cast<size_t>(pitch * ir::integers_per_word(bits)));
    std::vector<float> values(static_cast<size_t>(k));
    for (int64_t row = begin; row < end; ++row) {
      ir::unpack_words(static_cast<const uint32_t*>(words.data()) + row * pitch, pitch, bits, q.data());
      for (int64_t b = 0; b < blocks; ++b) {
        const auto at = static_cast<size_t>(row * blocks + b);
        const int64_t first = b * block, count = std::min(block, k - first);
        float* const out = values.data() + first;
        if (is_table) {
          for (int64_t i = 0; i < count; ++i) out[i] = third[q[static_cast<size_t>(first + i)]] * factors[at];
        } else {
          const float zero = third.empty() ? static_cast<float>(node.attrs.integer("zero")) : third[at];
          scale(q.data() + first, count, zero, factors[at], out);
        }
      }
      store_as(dtype, values.data(), k, to + row * row_bytes);
    }
  });
  return result;
}

ir::Graph widen_weights(const ir::Graph& graph, const PassContext& context) {
  const std::vector<bool> chosen = widened_in_runs(graph, context);
  if (std::find(chosen.begin(), chosen.end(), true) == chosen.end()) return graph;
  const auto users = ir::users(graph);
  return ir::Rewriter(graph).run([&](ir::Rewriter& r, const Node& node) -> std::optional<std::vector<ValueId>> {
    if (node.outputs.empty() || !chosen[graph.value(node.outputs[0]).producer]) return std::nullopt;
    if (context.quantised != nullptr) report_readers(graph, users, node.outputs[0], *context.quantised);
    std::vector<Tensor> operands;
    for (const ValueId input : node.inputs) operands.push_back(*graph.constant_of(input));
    return std::vector{r.constant(widened(node, operands))};
  });
}

}  // namespace heddle::passes
