#include "ir/analysis/attention.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "heddle/dtype.h"
#include "heddle/tensor.h"

namespace heddle::ir {
namespace {

class Matcher {
 public:
  explicit Matcher(const Graph& graph) : graph_(graph) {}

  std::optional<Attention> match(NodeId product) {
    const Node& dot = graph_.node(product);
    if (dot.op != Op::kDot || dot.inputs[0] == dot.inputs[1] || !is_matrix_product(dot, true)) return std::nullopt;
    const auto lhs_rank = static_cast<int64_t>(graph_.shape(dot.inputs[0]).size());
    if (dot.attrs.ints("lhs_contract")[0] != lhs_rank - 1) return std::nullopt;
    found_.values_product = product;
    const auto scores = softmax_operand(look_through(dot.inputs[0]));
    if (!scores) return std::nullopt;
    found_.scores = *scores;
    if (!depends(*scores) || products_.size() != 1) return std::nullopt;
    found_.scores_product = products_[0];
    const Node& first = graph_.node(found_.scores_product);
    if (!is_matrix_product(first, false) || !keeps_matrix(first.outputs[0], *scores)) return std::nullopt;
    std::sort(found_.inside.begin(), found_.inside.end());
    found_.inside.erase(std::unique(found_.inside.begin(), found_.inside.end()), found_.inside.end());
    return found_;
  }

 private:
  const Node& producer(ValueId v) const { return graph_.producer(v); }

  // One dimension of rows, of columns and of terms each; with `in_order` the batches of the left operand come first.
  bool is_matrix_product(const Node& dot, bool in_order) const {
    for (const auto& [side, batch, contract] :
         {std::tuple(0, "lhs_batch", "lhs_contract"), std::tuple(1, "rhs_batch", "rhs_contract")}) {
      const auto& batches = dot.attrs.ints(batch);
      if (dot.attrs.ints(contract).size() != 1) return false;
      if (graph_.shape(dot.inputs[static_cast<size_t>(side)]).size() != batches.size() + 2) return false;
      for (size_t i = 0; in_order && side == 0 && i < batches.size(); ++i) {
        if (batches[i] != static_cast<int64_t>(i)) return false;
      }
    }
    return true;
  }

  // Whether both are batches of equal matrices, in the same order.
  bool keeps_matrix(ValueId a, ValueId b) const {
    const Shape &x = graph_.shape(a), &y = graph_.shape(b);
    return x.size() >= 2 && y.size() >= 2 && x.back() == y.back() && x[x.size() - 2] == y[y.size() - 2] &&
           element_count(x) == element_count(y);
  }
  bool is_transparent(const Node& node) const {
    if (node.op == Op::kCast) return is_float(graph_.dtype(node.inputs[0])) && is_float(graph_.dtype(node.outputs[0]));
    return node.op == Op::kReshape && keeps_matrix(node.inputs[0], node.outputs[0]);
  }
  ValueId look_through(ValueId v) {
    while (is_transparent(producer(v))) v = step(v);
    return v;
  }
  ValueId without_casts(ValueId v) const {
    while (producer(v).op == Op::kCast) v = producer(v).inputs[0];
    return v;
  }
  // The operand of a node that belongs to the attention.
  ValueId step(ValueId v, size_t operand = 0) {
    found_.inside.push_back(graph_.value(v).producer);
    return producer(v).inputs[operand];
  }
  bool is_one(ValueId v) const {
    while (producer(v).op == Op::kBroadcast || producer(v).op == Op::kReshape) v = producer(v).inputs[0];
    const Tensor* constant = graph_.constant_of(v);
    if (constant == nullptr || constant->dtype() != DType::kF32) return false;
    const auto values = constant->values<float>();
    return std::all_of(values.begin(), values.end(), [](float x) { return x == 1.0F; });
  }

  // What is spread over the last dimension to make `v`; `v` where nothing is.
  ValueId unspread(ValueId v) {
    const Op op = producer(v).op;
    if (op != Op::kBroadcast && op != Op::kReshape) return v;
    const Shape& shape = graph_.shape(v);
    while (producer(v).op == Op::kBroadcast || producer(v).op == Op::kReshape || producer(v).op == Op::kCast) {
      if (producer(v).op == Op::kBroadcast) {
        const auto& dims = producer(v).attrs.ints("dims");
        const Shape& from = graph_.shape(producer(v).inputs[0]);
        // Only the last dimension may be new or stretched.
        for (size_t d = 0; d + 1 < shape.size() && graph_.shape(v) == shape; ++d) {
          const auto at = std::find(dims.begin(), dims.end(), static_cast<int64_t>(d));
          const int64_t extent = at == dims.end() ? 1 : from[static_cast<size_t>(at - dims.begin())];
          if (extent != shape[d]) return v;
        }
      }
      v = step(v);
    }
    return v;
  }
  // `v` as a reduction of `of` over its last dimension.
  bool is_reduction(ValueId v, const char* kind, ValueId of) {
    const Node& node = producer(v);
    if (node.op != Op::kReduce || node.attrs.text("kind") != kind) return false;
    const auto& dims = node.attrs.ints("dims");
    const auto rank = static_cast<int64_t>(graph_.shape(node.inputs[0]).size());
    if (dims.size() != 1 || dims[0] != rank - 1) return false;
    ValueId from = step(v);
    while (producer(from).op == Op::kCast && from != of) from = step(from);
    return from == of || without_casts(from) == without_casts(of);
  }

  // x of exp(x - max x) / sum exp(x - max x).
  std::optional<ValueId> softmax_operand(ValueId v) {
    const Node& quotient = producer(v);
    if (quotient.op != Op::kDiv && quotient.op != Op::kMul) return std::nullopt;
    found_.inside.push_back(graph_.value(v).producer);
    for (const size_t numerator : {size_t{0}, size_t{1}}) {
      if (quotient.op == Op::kDiv && numerator == 1) break;
      const auto before = found_.inside.size();
      ValueId exponential = quotient.inputs[numerator];
      while (producer(exponential).op == Op::kCast) exponential = step(exponential);
      if (producer(exponential).op == Op::kExp && divides(quotient, 1 - numerator, exponential)) {
        return exponent(exponential);
      }
      found_.inside.resize(before);
    }
    return std::nullopt;
  }
  bool divides(const Node& quotient, size_t operand, ValueId exponential) {
    ValueId sum = unspread(quotient.inputs[operand]);
    if (quotient.op == Op::kMul) {
      const Node& inverse = producer(sum);
      if (inverse.op != Op::kDiv || !is_one(inverse.inputs[0])) return false;
      found_.inside.push_back(graph_.value(sum).producer);
      sum = unspread(inverse.inputs[1]);
    }
    return is_reduction(sum, "sum", exponential);
  }
  std::optional<ValueId> exponent(ValueId exponential) {
    ValueId difference = step(exponential);
    while (producer(difference).op == Op::kCast) difference = step(difference);
    if (producer(difference).op != Op::kSub) return std::nullopt;
    const ValueId x = step(difference);
    if (!is_reduction(unspread(producer(difference).inputs[1]), "max", x)) return std::nullopt;
    return x;
  }

  // Whether a value of the scores' matrices is made of a product of them, element by element.
  bool depends(ValueId v) {
    constexpr size_t kMostNodes = 64;
    if (depends_.size() >= kMostNodes) return false;  // and too long to be what lies between two products
    const auto [at, is_new] = depends_.try_emplace(v, false);
    if (!is_new) return at->second;
    const Node& node = producer(v);
    bool result = false;
    if (node.op == Op::kDot) {
      products_.push_back(graph_.value(v).producer);
      result = true;
    } else if (is_elementwise(node.op) || is_transparent(node)) {
      for (const ValueId input : node.inputs) {
        if (keeps_matrix(input, v) && depends(input)) result = true;
      }
      if (result) found_.inside.push_back(graph_.value(v).producer);
    }
    depends_[v] = result;
    return result;
  }

  const Graph& graph_;
  Attention found_;
  std::map<ValueId, bool> depends_;
  std::vector<NodeId> products_;
};

}  // namespace

std::optional<Attention> match_attention(const Graph& graph, NodeId product) {
  return Matcher(graph).match(product);
}

}  // namespace heddle::ir
