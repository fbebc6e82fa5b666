#include "passes/contraction/merge_dots.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <map>

#include "ir/analysis/constant_weights.h"
#include "ir/rewrite.h"
#include "passes/contraction/join_columns.h"

namespace heddle::passes {
namespace {

// Columns of a part begin at multiples of 16 bytes of 16-bit numbers.
constexpr int64_t kColumns = 8;

// (x w + bias) * factor, as `result`.
struct Product {
  const Node* dot = nullptr;
  const Node* last = nullptr;     // makes the result
  const Tensor* bias = nullptr;   // of one element, or one a column
  const Tensor* scale = nullptr;  // the factor for 16-bit or packed weights, whose product with it would be rounded
  float factor = 1;               // of f32
  int64_t columns = 0;
  std::string form;  // of the weights; products of one form can be merged
};

bool is_merged_type(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16;
}

// `count` elements, each times the factor.
void copy_elements(const void* from, void* to, int64_t count, DType dtype, float factor) {
  if (factor == 1) {
    std::memcpy(to, from, static_cast<size_t>(count) * size_of(dtype));
    return;
  }
  const auto* values = static_cast<const float*>(from);
  std::transform(values, values + count, static_cast<float*>(to), [&](float v) { return v * factor; });
}

Tensor number(DType dtype, float value) {
  Tensor one(dtype, {1});
  if (dtype == DType::kF32) {
    one.mutable_values<float>()[0] = value;
  } else {
    one.mutable_values<uint16_t>()[0] = static_cast<uint16_t>(encode_float(dtype, value));
  }
  return one;
}

struct Merge {
  std::vector<Product> products;
  ValueId made = 0;  // in the target, once the first of them was visited
  bool is_made = false;
};

class Merger {
 public:
  explicit Merger(const ir::Graph& graph) : graph_(graph), readers_(ir::users(graph)), is_output_(graph.value_count()) {
    for (const auto& port : graph.outputs()) is_output_[port.value] = true;
  }

  ir::Graph run() {
    find();
    return ir::Rewriter(graph_).run([this](ir::Rewriter& r, const Node& node) -> std::optional<std::vector<ValueId>> {
      const auto found = place_.find(&node);
      if (found == place_.end()) return std::nullopt;
      Merge& merge = merges_[found->second.first];
      if (!merge.is_made) make(r, merge);
      return std::vector<ValueId>{part(r, merge, found->second.second)};
    });
  }

 private:
  // The vector along the last dimension, or the one number, that is broadcast to a value; of one row it is the value.
  const Tensor* broadcast_constant(ValueId v, int64_t last) const {
    const Node& node = graph_.producer(v);
    if (const Tensor* whole = graph_.constant_of(v)) {
      return whole->size() == graph_.shape(v).back() ? whole : nullptr;
    }
    if (node.op != Op::kBroadcast) return nullptr;
    const Tensor* small = graph_.constant_of(node.inputs[0]);
    if (small == nullptr || small->dtype() != graph_.dtype(v)) return nullptr;
    if (small->size() == 1) return small;
    return small->rank() == 1 && node.attrs.ints("dims")[0] == last ? small : nullptr;
  }

  const Node* only_reader(ValueId v) const {
    return readers_[v].size() == 1 && !is_output_[v] ? &graph_.node(readers_[v][0]) : nullptr;
  }

  // True if slicing `v` adds no kernel. A norm of heads reads the cast of its product and the squares of that, which
  // the norm's kernel computes: `inside` is true for these.
  bool takes_slices(ValueId v, bool inside = false) const {
    if (is_output_[v] || readers_[v].empty()) return false;
    return std::all_of(readers_[v].begin(), readers_[v].end(), [&](NodeId id) {
      const Node& reader = graph_.node(id);
      const bool squares = inside && reader.op == Op::kMul && reader.inputs[0] == reader.inputs[1];
      if (reader.op == Op::kCast && !inside) return takes_slices(reader.outputs[0], true);
      if (squares) return is_reshaped(reader.outputs[0]);
      // What is repeated is read by a kernel of its own.
      const bool repeats = reader.op == Op::kBroadcast &&
                           element_count(graph_.shape(reader.outputs[0])) > element_count(graph_.shape(v));
      return repeats || reader.op == Op::kReshape || reader.op == Op::kTranspose || (reader.op == Op::kDot && !inside);
    });
  }

  bool is_reshaped(ValueId v) const {
    const Node* reader = only_reader(v);
    return reader != nullptr && reader->op == Op::kReshape;
  }

  std::optional<Product> product_at(const Node& dot) const {
    const DType dtype = graph_.dtype(dot.outputs[0]);
    if (dot.op != Op::kDot || !is_merged_type(dtype)) return std::nullopt;
    const ir::TensorType& weights = graph_.type(dot.inputs[1]);
    auto form = ir::constant_weights(graph_, dot);
    if (!form || weights.dtype != dtype || weights.shape.size() != 2 || element_count(weights.shape) == 0 ||
        !dot.attrs.ints("rhs_batch").empty() || dot.attrs.ints("rhs_contract").size() != 1) {
      return std::nullopt;
    }
    Product p{.dot = &dot, .last = &dot, .columns = graph_.shape(dot.outputs[0]).back(), .form = *std::move(form)};
    const auto last = static_cast<int64_t>(graph_.shape(dot.outputs[0]).size()) - 1;
    const auto follows = [&](Op op) -> const Tensor* {
      const Node* next = only_reader(p.last->outputs[0]);
      if (next == nullptr || next->op != op || next->inputs[0] != p.last->outputs[0]) return nullptr;
      const Tensor* constant = broadcast_constant(next->inputs[1], last);
      if (constant != nullptr) p.last = next;
      return constant;
    };
    p.bias = follows(Op::kAdd);
    if (const Node* before = p.last; const Tensor* factor = follows(Op::kMul)) {
      if (dtype != DType::kF32 || graph_.constant_of(dot.inputs[1]) == nullptr) {
        p.scale = factor;
      } else if (factor->size() == 1) {
        p.factor = factor->values<float>()[0];
      } else {
        p.last = before;
      }
    }
    if (p.columns % kColumns != 0 || !takes_slices(p.last->outputs[0])) return std::nullopt;
    return p;
  }

  void find() {
    std::map<std::tuple<ValueId, int64_t, int64_t, std::string>, size_t> at;
    for (const Node& node : graph_.nodes()) {
      auto product = product_at(node);
      if (!product) continue;
      const auto key = std::tuple(node.inputs[0], node.attrs.ints("lhs_contract")[0],
                                  node.attrs.ints("rhs_contract")[0], product->form);
      const auto [found, is_new] = at.try_emplace(key, merges_.size());
      if (is_new) merges_.emplace_back();
      merges_[found->second].products.push_back(std::move(*product));
    }
    for (size_t m = 0; m < merges_.size(); ++m) {
      for (size_t i = 0; merges_[m].products.size() > 1 && i < merges_[m].products.size(); ++i) {
        place_[merges_[m].products[i].last] = {m, i};
      }
    }
  }

  // Joins the weights along `dim`, each times its product's factor.
  ValueId weights_of(ir::Rewriter& r, const Merge& merge, size_t dim) const {
    std::vector<WeightColumns> parts;
    for (const Product& p : merge.products) parts.push_back({p.dot->inputs[1], 0, p.columns, p.factor});
    return join_columns(r, graph_, parts, dim);
  }

  // The biases or scales of the columns, each times its product's factor; `missing` where a product has none.
  static Tensor columns_of(const Merge& merge, int64_t columns, DType dtype, const Tensor* Product::*of,
                           float missing) {
    Tensor all(dtype, {columns});
    auto* to = static_cast<std::byte*>(all.mutable_data());
    const Tensor none = number(dtype, missing);
    for (const Product& p : merge.products) {
      const Tensor& one = p.*of != nullptr ? *(p.*of) : none;
      for (int64_t i = 0; i < p.columns; i += one.size()) {
        copy_elements(one.data(), to, one.size(), dtype, p.factor);
        to += one.bytes();
      }
    }
    return all;
  }

  // `op` of the merged product and a vector of its columns, where any of the products has one.
  void apply(ir::Rewriter& r, Merge& merge, Op op, const Tensor* Product::*of, float missing) const {
    const bool any =
        std::any_of(merge.products.begin(), merge.products.end(), [&](const Product& p) { return p.*of != nullptr; });
    if (!any) return;
    const Shape shape = r.target().shape(merge.made);
    const DType dtype = graph_.dtype(merge.products[0].dot->outputs[0]);
    const ValueId vector = r.constant(columns_of(merge, shape.back(), dtype, of, missing));
    const ValueId wide =
        r.emit(Op::kBroadcast, {vector}, {{"shape", shape}, {"dims", Ints{static_cast<int64_t>(shape.size()) - 1}}});
    merge.made = r.emit(op, {merge.made, wide});
  }

  void make(ir::Rewriter& r, Merge& merge) const {
    const Node& first = *merge.products[0].dot;
    for (const Product& p : merge.products) {
      r.also_from(*p.dot);
      r.also_from(*p.last);
    }
    const size_t dim = first.attrs.ints("rhs_contract")[0] == 0 ? 1 : 0;
    merge.made = r.emit(Op::kDot, {r(first.inputs[0]), weights_of(r, merge, dim)}, first.attrs);
    apply(r, merge, Op::kAdd, &Product::bias, 0);
    apply(r, merge, Op::kMul, &Product::scale, 1);
    merge.is_made = true;
  }

  static ValueId part(ir::Rewriter& r, const Merge& merge, size_t which) {
    Ints starts(r.target().shape(merge.made).size(), 0), limits = r.target().shape(merge.made);
    for (size_t i = 0; i < which; ++i) starts.back() += merge.products[i].columns;
    limits.back() = starts.back() + merge.products[which].columns;
    return r.emit(Op::kSlice, {merge.made},
                  {{"starts", starts}, {"limits", limits}, {"strides", Ints(starts.size(), 1)}});
  }

  const ir::Graph& graph_;
  const std::vector<std::vector<NodeId>> readers_;
  std::vector<bool> is_output_;
  std::vector<Merge> merges_;
  std::map<const Node*, std::pair<size_t, size_t>> place_;  // of who makes a result: its merge and its place there
};

}  // namespace

ir::Graph merge_dots(const ir::Graph& graph, const PassContext&) {
  return Merger(graph).run();
}

}  // namespace heddle::passes
