#include "passes/contraction/fold_batch_norm.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "ir/rewrite.h"
#include "passes/rewrite/emitter.h"
#include "passes/simplify/constant_kernels.h"

namespace heddle::passes {
namespace {

using Channels = std::vector<float>;  // one per channel

bool is_folded(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16;
}

Tensor to_f32(const Tensor& tensor) {
  return tensor.dtype() == DType::kF32 ? tensor : *converted(tensor, DType::kF32);
}

// f32 values in a narrower type. Nothing if that loses more than rounding the largest of them does: an overflow, or
// bits of subnormal numbers where all are small.
std::optional<Tensor> narrowed(const Tensor& tensor, DType to) {
  if (to == DType::kF32) return tensor;
  if (to == DType::kF16) {
    constexpr float kLargest = 65504, kEnough = 0x1p-13F;
    float largest = 0;
    for (const float value : tensor.values<float>()) largest = std::max(largest, std::fabs(value));
    if (largest > kLargest || (largest > 0 && largest < kEnough)) return std::nullopt;
  }
  return converted(tensor, to);
}

// One round over a graph. A chain of constants takes one round for each.
class Round {
 public:
  explicit Round(const ir::Graph& graph) : graph_(graph), readers_(ir::users(graph)), is_output_(graph.value_count()) {
    for (const auto& port : graph.outputs()) is_output_[port.value] = true;
  }

  ir::Graph run() {
    return ir::Rewriter(graph_).run([this](ir::Rewriter& r, const Node& node) -> std::optional<std::vector<ValueId>> {
      if (!is_folded(graph_.dtype(node.outputs[0]))) return std::nullopt;
      std::optional<ValueId> result;
      if (node.op == Op::kMul) result = product_behind(r, node);
      if (node.op == Op::kAdd) result = sums_behind(r, node);
      if (node.op == Op::kConv || node.op == Op::kDot) result = product_in_front(r, node);
      if (!result) return std::nullopt;
      changed_ = true;
      return std::vector<ValueId>{*result};
    });
  }
  bool changed() const { return changed_; }

 private:
  bool read_once(ValueId v) const { return readers_[v].size() == 1 && !is_output_[v]; }

  // A contraction with constant weights, and what casts its 16-bit result to f32 (null where nothing does).
  struct Anchor {
    const Node* node;
    const Node* cast;
  };

  // The one that makes a value, if nothing else reads it.
  std::optional<Anchor> contraction(ValueId v) const {
    Anchor anchor{&graph_.producer(v), nullptr};
    if (anchor.node->op == Op::kCast && graph_.dtype(v) == DType::kF32 && read_once(v)) {
      anchor.cast = anchor.node;
      v = anchor.cast->inputs[0];
      anchor.node = &graph_.producer(v);
    }
    const Node& node = *anchor.node;
    if ((node.op != Op::kConv && node.op != Op::kDot) || !read_once(v)) return std::nullopt;
    const Tensor* weights = graph_.constant_of(node.inputs[1]);
    if (weights == nullptr || !is_folded(weights->dtype())) return std::nullopt;
    return output_channel(node) >= 0 ? std::optional(anchor) : std::nullopt;
  }

  // Where the output channels stand in the result and in the weights; -1 where there is no one such dimension.
  int64_t output_channel(const Node& node) const {
    const auto rank = static_cast<int64_t>(graph_.shape(node.outputs[0]).size());
    if (node.op == Op::kConv) return node.attrs.text("layout") == "nhwc" ? rank - 1 : 1;
    return weight_channel(node) >= 0 ? rank - 1 : -1;
  }
  int64_t weight_channel(const Node& node) const {
    if (node.op == Op::kConv) return 0;
    if (!node.attrs.ints("rhs_batch").empty()) return -1;
    const Ints& contract = node.attrs.ints("rhs_contract");
    const auto rank = graph_.shape(node.inputs[1]).size();
    if (contract.size() + 1 != rank) return -1;
    for (int64_t d = 0; d < static_cast<int64_t>(rank); ++d) {
      if (index_of(contract, d) < 0) return d;
    }
    return -1;
  }

  // A constant that depends on one dimension only, expanded to its extent.
  std::optional<Channels> per_channel(ValueId v, int64_t dim) const {
    const auto extent = static_cast<size_t>(graph_.shape(v)[static_cast<size_t>(dim)]);
    const Node& node = graph_.producer(v);
    if (node.op != Op::kBroadcast) return std::nullopt;
    const Tensor* small = graph_.constant_of(node.inputs[0]);
    if (small == nullptr || !is_folded(small->dtype()) || small->size() == 0) return std::nullopt;
    if (small->rank() > 1 || (small->rank() == 1 && node.attrs.ints("dims")[0] != dim)) return std::nullopt;
    const Tensor wide = to_f32(*small);
    const auto values = wide.values<float>();
    if (small->rank() == 0) return Channels(extent, values[0]);
    return values.size() == extent ? Channels(values.begin(), values.end()) : std::optional<Channels>();
  }

  // One factor for all channels costs an epilogue next to nothing, a copy of large weights costs memory.
  static bool is_worth_it(const Channels& factors, const Tensor& weights) {
    constexpr int64_t kSmall = 1 << 16;
    return weights.size() <= kSmall ||
           std::adjacent_find(factors.begin(), factors.end(), std::not_equal_to<>()) != factors.end();
  }

  // Channels in the type of a value; nothing if that is too narrow.
  std::optional<Tensor> typed_as(ValueId v, const Channels& values) const {
    const auto count = static_cast<int64_t>(values.size());
    return narrowed(Tensor::of<float>(DType::kF32, {count}, values), graph_.dtype(v));
  }
  static ValueId plus(ir::Rewriter& r, ValueId x, Tensor channels, int64_t dim) {
    const ValueId vector = r.constant(std::move(channels));
    const Shape shape = r.target().shape(x);
    return r.emit(Op::kAdd, {x, r.emit(Op::kBroadcast, {vector}, {{"shape", shape}, {"dims", Ints{dim}}})});
  }

  // Weights times factors along a dimension, where they are worth a copy.
  std::optional<Tensor> scaled(const Node& node, int64_t weight_dim, const std::optional<Channels>& factors) const {
    const Tensor& weights = *graph_.constant_of(node.inputs[1]);
    if (!factors || !is_worth_it(*factors, weights)) return std::nullopt;
    return narrowed(scaled_along(to_f32(weights), weight_dim, *factors), weights.dtype());
  }

  // The contraction again, with other weights.
  ValueId with_weights(ir::Rewriter& r, const Anchor& anchor, Tensor weights) const {
    const Node& node = *anchor.node;
    r.also_from(node);
    const ValueId made = r.emit(node.op, {r(node.inputs[0]), r.constant(std::move(weights))}, node.attrs);
    return anchor.cast == nullptr ? made : r.emit(Op::kCast, {made}, anchor.cast->attrs);
  }

  // conv(x, w) * s = conv(x, w * s); (conv(x, w) + b) * s = conv(x, w * s) + b * s
  std::optional<ValueId> product_behind(ir::Rewriter& r, const Node& mul) const {
    if (const auto anchor = contraction(mul.inputs[0])) {
      const auto factors = per_channel(mul.inputs[1], output_channel(*anchor->node));
      auto weights = scaled(*anchor->node, weight_channel(*anchor->node), factors);
      return weights ? std::optional(with_weights(r, *anchor, std::move(*weights))) : std::nullopt;
    }
    const Node& add = graph_.producer(mul.inputs[0]);
    if (add.op != Op::kAdd || !read_once(mul.inputs[0])) return std::nullopt;
    const auto anchor = contraction(add.inputs[0]);
    if (!anchor) return std::nullopt;
    const int64_t dim = output_channel(*anchor->node);
    const auto factors = per_channel(mul.inputs[1], dim);
    auto bias = per_channel(add.inputs[1], dim);
    auto weights = scaled(*anchor->node, weight_channel(*anchor->node), factors);
    if (!weights || !bias) return std::nullopt;
    for (size_t i = 0; i < bias->size(); ++i) (*bias)[i] *= (*factors)[i];
    auto typed = typed_as(mul.outputs[0], *bias);
    if (!typed) return std::nullopt;
    r.also_from(add);
    return plus(r, with_weights(r, *anchor, std::move(*weights)), std::move(*typed), dim);
  }

  // (conv(x, w) + a) + b = conv(x, w) + (a + b)
  std::optional<ValueId> sums_behind(ir::Rewriter& r, const Node& add) const {
    const Node& inner = graph_.producer(add.inputs[0]);
    if (inner.op != Op::kAdd || !read_once(add.inputs[0])) return std::nullopt;
    const auto anchor = contraction(inner.inputs[0]);
    if (!anchor) return std::nullopt;
    const int64_t dim = output_channel(*anchor->node);
    auto a = per_channel(inner.inputs[1], dim);
    const auto b = per_channel(add.inputs[1], dim);
    if (!a || !b) return std::nullopt;
    for (size_t i = 0; i < a->size(); ++i) (*a)[i] += (*b)[i];
    auto typed = typed_as(add.outputs[0], *a);
    if (!typed) return std::nullopt;
    r.also_from(inner);
    return plus(r, r(inner.inputs[0]), std::move(*typed), dim);
  }

  // conv(x * s, w) = conv(x, s * w): the padding of zeros does not mind.
  std::optional<ValueId> product_in_front(ir::Rewriter& r, const Node& anchor) const {
    const Tensor* weights = graph_.constant_of(anchor.inputs[1]);
    const Node& mul = graph_.producer(anchor.inputs[0]);
    if (weights == nullptr || !is_folded(weights->dtype()) || mul.op != Op::kMul || !read_once(anchor.inputs[0])) {
      return std::nullopt;
    }
    const auto rank = static_cast<int64_t>(graph_.shape(anchor.inputs[0]).size());
    int64_t dim = 0, weight_dim = 1;
    if (anchor.op == Op::kConv) {
      if (anchor.attrs.integer("groups") != 1) return std::nullopt;
      dim = anchor.attrs.text("layout") == "nhwc" ? rank - 1 : 1;
    } else {
      if (anchor.attrs.ints("lhs_contract").size() != 1) return std::nullopt;
      dim = anchor.attrs.ints("lhs_contract")[0];
      weight_dim = anchor.attrs.ints("rhs_contract")[0];
    }
    auto folded = scaled(anchor, weight_dim, per_channel(mul.inputs[1], dim));
    if (!folded) return std::nullopt;
    r.also_from(mul);
    return r.emit(anchor.op, {r(mul.inputs[0]), r.constant(std::move(*folded))}, anchor.attrs);
  }

  const ir::Graph& graph_;
  const std::vector<std::vector<NodeId>> readers_;
  std::vector<bool> is_output_;
  bool changed_ = false;
};

}  // namespace

ir::Graph fold_batch_norm(const ir::Graph& graph, const PassContext&) {
  constexpr int kMaxRounds = 8;
  ir::Graph current = graph;
  for (int i = 0; i < kMaxRounds; ++i) {
    Round round(current);
    ir::Graph next = round.run();
    if (!round.changed()) break;
    current = std::move(next);
  }
  return current;
}

}  // namespace heddle::passes
