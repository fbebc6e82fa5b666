#include "passes/contraction/fold_batch_norm.h"

#include <algorithm>
#include <functional>

#include "ir/rewrite.h"
#include "passes/rewrite/emitter.h"
#include "passes/simplify/constant_kernels.h"

namespace heddle::passes {
namespace {

using Channels = std::vector<float>;  // one per channel

// One round over a graph. A chain of constants takes one round for each.
class Round {
 public:
  explicit Round(const ir::Graph& graph) : graph_(graph), readers_(ir::users(graph)), is_output_(graph.value_count()) {
    for (const auto& port : graph.outputs()) is_output_[port.value] = true;
  }

  ir::Graph run() {
    return ir::Rewriter(graph_).run([this](ir::Rewriter& r, const Node& node) -> std::optional<std::vector<ValueId>> {
      if (graph_.dtype(node.outputs[0]) != DType::kF32) return std::nullopt;
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

  // The contraction with constant weights that makes a value, if nothing else reads it.
  const Node* contraction(ValueId v) const {
    const Node& node = graph_.producer(v);
    if ((node.op != Op::kConv && node.op != Op::kDot) || !read_once(v)) return nullptr;
    const Tensor* weights = graph_.constant_of(node.inputs[1]);
    if (weights == nullptr || weights->dtype() != DType::kF32) return nullptr;
    return output_channel(node) >= 0 ? &node : nullptr;
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
    if (small == nullptr || small->dtype() != DType::kF32 || small->size() == 0) return std::nullopt;
    if (small->rank() == 0) return Channels(extent, small->values<float>()[0]);
    if (small->rank() != 1 || node.attrs.ints("dims")[0] != dim) return std::nullopt;
    const auto values = small->values<float>();
    return values.size() == extent ? Channels(values.begin(), values.end()) : std::optional<Channels>();
  }

  // One factor for all channels costs an epilogue next to nothing, a copy of large weights costs memory.
  static bool is_worth_it(const Channels& factors, const Tensor& weights) {
    constexpr int64_t kSmall = 1 << 16;
    return weights.size() <= kSmall ||
           std::adjacent_find(factors.begin(), factors.end(), std::not_equal_to<>()) != factors.end();
  }

  static ValueId bias_like(ir::Rewriter& r, ValueId like, const Channels& values, int64_t dim) {
    const ValueId vector = r.constant(Tensor::of<float>(DType::kF32, {static_cast<int64_t>(values.size())}, values));
    const Shape shape = r.target().shape(like);
    return r.emit(Op::kBroadcast, {vector}, {{"shape", shape}, {"dims", Ints{dim}}});
  }

  // The contraction again, with other weights.
  ValueId with_weights(ir::Rewriter& r, const Node& node, Tensor weights) const {
    r.also_from(node);
    return r.emit(node.op, {r(node.inputs[0]), r.constant(std::move(weights))}, node.attrs);
  }
  ValueId scaled(ir::Rewriter& r, const Node& node, const Channels& factors) const {
    return with_weights(r, node, scaled_along(*graph_.constant_of(node.inputs[1]), weight_channel(node), factors));
  }

  // conv(x, w) * s = conv(x, w * s); (conv(x, w) + b) * s = conv(x, w * s) + b * s
  std::optional<ValueId> product_behind(ir::Rewriter& r, const Node& mul) const {
    if (const Node* anchor = contraction(mul.inputs[0])) {
      const auto factors = per_channel(mul.inputs[1], output_channel(*anchor));
      if (factors && is_worth_it(*factors, *graph_.constant_of(anchor->inputs[1]))) return scaled(r, *anchor, *factors);
      return std::nullopt;
    }
    const Node& add = graph_.producer(mul.inputs[0]);
    if (add.op != Op::kAdd || !read_once(mul.inputs[0])) return std::nullopt;
    const Node* anchor = contraction(add.inputs[0]);
    if (anchor == nullptr) return std::nullopt;
    const int64_t dim = output_channel(*anchor);
    const auto factors = per_channel(mul.inputs[1], dim);
    auto bias = per_channel(add.inputs[1], dim);
    if (!factors || !bias || !is_worth_it(*factors, *graph_.constant_of(anchor->inputs[1]))) return std::nullopt;
    for (size_t i = 0; i < bias->size(); ++i) (*bias)[i] *= (*factors)[i];
    r.also_from(add);
    const ValueId product = scaled(r, *anchor, *factors);
    return r.emit(Op::kAdd, {product, bias_like(r, product, *bias, dim)});
  }

  // (conv(x, w) + a) + b = conv(x, w) + (a + b)
  std::optional<ValueId> sums_behind(ir::Rewriter& r, const Node& add) const {
    const Node& inner = graph_.producer(add.inputs[0]);
    if (inner.op != Op::kAdd || !read_once(add.inputs[0])) return std::nullopt;
    const Node* anchor = contraction(inner.inputs[0]);
    if (anchor == nullptr) return std::nullopt;
    const int64_t dim = output_channel(*anchor);
    auto a = per_channel(inner.inputs[1], dim);
    const auto b = per_channel(add.inputs[1], dim);
    if (!a || !b) return std::nullopt;
    for (size_t i = 0; i < a->size(); ++i) (*a)[i] += (*b)[i];
    r.also_from(inner);
    const ValueId x = r(inner.inputs[0]);
    return r.emit(Op::kAdd, {x, bias_like(r, x, *a, dim)});
  }

  // conv(x * s, w) = conv(x, s * w): the padding of zeros does not mind.
  std::optional<ValueId> product_in_front(ir::Rewriter& r, const Node& anchor) const {
    const Tensor* weights = graph_.constant_of(anchor.inputs[1]);
    const Node& mul = graph_.producer(anchor.inputs[0]);
    if (weights == nullptr || weights->dtype() != DType::kF32 || mul.op != Op::kMul || !read_once(anchor.inputs[0])) {
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
    const auto factors = per_channel(mul.inputs[1], dim);
    if (!factors || !is_worth_it(*factors, *weights)) return std::nullopt;
    r.also_from(mul);
    return r.emit(anchor.op, {r(mul.inputs[0]), r.constant(scaled_along(*weights, weight_dim, *factors))},
                  anchor.attrs);
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
