#include "passes/simplify/fold.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "ir/reference/eval.h"
#include "ir/reference/scalar.h"
#include "ir/rewrite.h"
#include "ir/tile_call.h"
#include "passes/simplify/constant_kernels.h"

namespace heddle::passes {
namespace {

// What folding may make of constants, per node: this much, or as much again as a cast of bytes to f32 makes.
constexpr int64_t kFreeBytes = 4 << 20;
constexpr int64_t kMostGrowth = 4;
// What the float64 evaluator may be asked to do per node: elements, and products of contractions.
constexpr int64_t kMaxSlowElements = 1 << 22;
constexpr int64_t kMaxProducts = int64_t{1} << 28;

class Folder {
 public:
  Folder(const ir::Graph& target, FoldMemo* memo) : target_(target), memo_(memo) {}

  // The results of a node of the source whose operands are `inputs` in the target; nothing where it is not folded.
  std::optional<std::vector<Tensor>> run(const ir::Graph& source, const Node& node,
                                         const std::vector<ValueId>& inputs) const {
    if (!may_fold(source, node, inputs)) return std::nullopt;
    std::vector<Tensor> operands;
    for (ValueId v : inputs) operands.push_back(value_of(v));
    if (memo_ == nullptr) return evaluate(source, node, operands);
    return memo_->get(node, operands, [&] { return evaluate(source, node, operands); });
  }

 private:
  static std::optional<std::vector<Tensor>> evaluate(const ir::Graph& source, const Node& node,
                                                     const std::vector<Tensor>& operands) {
    if (auto fast = evaluate_dense(node, operands)) return std::vector<Tensor>{std::move(*fast)};
    if (cost(source, node) > kMaxProducts || largest(source, node) > kMaxSlowElements) return std::nullopt;
    std::vector<ir::Array> arrays;
    for (const Tensor& t : operands) arrays.push_back(ir::to_array(t));
    std::vector<const ir::Array*> pointers;
    for (const ir::Array& a : arrays) pointers.push_back(&a);
    std::vector<Tensor> results;
    try {
      for (const ir::Array& a : ir::evaluate_node(source, node, pointers, true)) results.push_back(ir::to_tensor(a));
    } catch (const Error& error) {
      // Constant data that breaks a rule (an index outside its axis) is an error when the model runs, if it ever gets
      // there.
      if (error.code() == ErrorCode::kInternal) throw;
      return std::nullopt;
    }
    return results;
  }

  // A broadcast or an iota, or broadcasts of these: kernels compute it.
  bool is_implicit(ValueId v) const {
    const Node& node = target_.producer(v);
    if (node.op == Op::kIota) return true;
    return node.op == Op::kBroadcast && (target_.constant_of(node.inputs[0]) != nullptr || is_implicit(node.inputs[0]));
  }

  // Which dimensions of an implicit value its elements depend on.
  std::vector<bool> varying(ValueId v) const {
    const Node& node = target_.producer(v);
    std::vector<bool> result(target_.shape(v).size());
    if (node.op == Op::kIota) {
      result[static_cast<size_t>(node.attrs.integer("dim"))] = true;
    } else if (node.op == Op::kBroadcast) {
      const std::vector<bool> inner = varying(node.inputs[0]);
      const Shape& small = target_.shape(node.inputs[0]);
      for (size_t d = 0; d < inner.size(); ++d) {
        if (inner[d] && small[d] != 1) result[static_cast<size_t>(node.attrs.ints("dims")[d])] = true;
      }
    } else {
      result.assign(result.size(), true);
    }
    return result;
  }

  // Whether an elementwise node is cheaper to compute from positions than to read: large masks, and large tables of
  // several positions.
  bool is_of_positions(const ir::Graph& source, const Node& node, const std::vector<ValueId>& inputs) const {
    constexpr int64_t kMostElements = 1 << 16;
    if (!ir::is_elementwise(node.op)) return false;
    const Shape& shape = source.shape(node.outputs[0]);
    std::vector<bool> all(shape.size());
    for (ValueId v : inputs) {
      if (target_.constant_of(v) != nullptr) return false;
      const std::vector<bool> one = varying(v);
      for (size_t d = 0; d < one.size(); ++d) all[d] = all[d] || one[d];
    }
    int64_t elements = 1;
    for (size_t d = 0; d < shape.size(); ++d) elements *= all[d] ? shape[d] : 1;
    const bool is_mask = source.dtype(node.outputs[0]) == DType::kBool;
    return elements > kMostElements && (is_mask || std::count(all.begin(), all.end(), true) > 1);
  }

  bool may_fold(const ir::Graph& source, const Node& node, const std::vector<ValueId>& inputs) const {
    switch (node.op) {
      case Op::kBroadcast:
      case Op::kDequantize:  // weights stay packed
      case Op::kRandom:
      case Op::kLoop:
      case Op::kIf:
        return false;
      default:
        break;
    }
    if (inputs.empty() || ir::calls_tile_program(node)) return false;
    int64_t given = 0, largest_given = kMaxSlowElements, largest_implicit = 0;
    for (ValueId v : inputs) {
      if (const Tensor* constant = target_.constant_of(v)) {
        given += static_cast<int64_t>(constant->bytes());
        largest_given = std::max(largest_given, constant->size());
      } else if (is_implicit(v)) {
        largest_implicit = std::max(largest_implicit, element_count(target_.shape(v)));
      } else {
        return false;
      }
    }
    if (largest_implicit > largest_given) return false;
    if (is_of_positions(source, node, inputs)) return false;
    double made = 0;  // an int64_t may overflow
    for (ValueId v : node.outputs) {
      const ir::TensorType& type = source.type(v);
      made += static_cast<double>(element_count(type.shape)) * static_cast<double>(size_of(type.dtype));
    }
    return made <= static_cast<double>(std::max(kFreeBytes, kMostGrowth * given));
  }

  Tensor value_of(ValueId v) const {
    if (const Tensor* constant = target_.constant_of(v)) return *constant;
    const Node& node = target_.producer(v);
    if (node.op == Op::kBroadcast) {
      const Tensor small = value_of(node.inputs[0]);
      return gather_view(small, *apply(StridedView::dense(small.shape()), node));
    }
    return ir::to_tensor(ir::evaluate_node(target_, node, {}, true)[0]);
  }

  static int64_t largest(const ir::Graph& graph, const Node& node) {
    int64_t count = 0;
    for (ValueId v : node.inputs) count = std::max(count, element_count(graph.shape(v)));
    for (ValueId v : node.outputs) count = std::max(count, element_count(graph.shape(v)));
    return count;
  }
  // Multiplications of a contraction, saturated; 0 for others.
  static int64_t cost(const ir::Graph& graph, const Node& node) {
    if (!ir::is_anchor(node.op)) return 0;
    double products = static_cast<double>(element_count(graph.shape(node.outputs[0])));
    if (node.op == Op::kDot) {
      for (int64_t d : node.attrs.ints("lhs_contract")) {
        products *= static_cast<double>(graph.shape(node.inputs[0])[static_cast<size_t>(d)]);
      }
    } else if (node.op == Op::kConv) {
      const Shape& w = graph.shape(node.inputs[1]);
      products *= static_cast<double>(element_count(w)) / static_cast<double>(std::max<int64_t>(1, w[0]));
    } else {
      for (int64_t n : node.attrs.ints("window")) products *= static_cast<double>(n);
    }
    return products > 1e18 ? int64_t{1} << 60 : static_cast<int64_t>(products);
  }

  const ir::Graph& target_;
  FoldMemo* memo_;
};

// What the results of a node depend on apart from the contents of its operands; nothing where that is not plain data.
std::optional<std::string> signature(const Node& node, const std::vector<Tensor>& operands) {
  std::string text(to_string(node.op));
  for (const auto& [name, attr] : node.attrs) {
    const bool plain = std::visit(
        [&, &key = name](const auto& value) {
          using T = std::decay_t<decltype(value)>;
          if constexpr (std::is_same_v<T, ir::Ints>) {
            text += fmt::format("|{}={}", key, fmt::join(value, ","));
          } else if constexpr (std::is_same_v<T, DType>) {
            text += fmt::format("|{}={}", key, to_string(value));
          } else if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, std::string>) {
            text += fmt::format("|{}={}", key, value);
          } else {
            return false;
          }
          return true;
        },
        attr);
    if (!plain) return std::nullopt;
  }
  for (const Tensor& operand : operands) {
    text += fmt::format("|{}{}@{}", to_string(operand.dtype()), to_string(operand.shape()), operand.data());
  }
  return text;
}

// Whether all slices along a dimension are equal.
bool repeats_along(const Tensor& value, size_t dim) {
  const Shape& shape = value.shape();
  if (shape[dim] == 1) return false;
  size_t slice = size_of(value.dtype());
  for (size_t d = dim + 1; d < shape.size(); ++d) slice *= static_cast<size_t>(shape[d]);
  const size_t line = slice * static_cast<size_t>(shape[dim]);
  const auto* bytes = static_cast<const std::byte*>(value.data());
  for (size_t at = 0; at < value.bytes(); at += line) {
    if (std::memcmp(bytes + at, bytes + at + slice, line - slice) != 0) return false;
  }
  return true;
}

// A constant that repeats is a broadcast of less: kernels then hold one value in a register, and see of which
// dimensions it is a function.
std::optional<ValueId> as_broadcast(ir::Rewriter& r, const Tensor& value) {
  constexpr int64_t kLeast = 2, kMost = 1 << 22;
  if (value.size() < kLeast || value.size() > kMost || value.dtype() == DType::kString) return std::nullopt;
  StridedView once{{}, {}, 0};
  ir::Ints dims;
  const bool is_splat = ir::is_splat(value);
  const ir::Ints pitches = StridedView::dense(value.shape()).strides;
  for (size_t d = 0; d < value.shape().size() && !is_splat; ++d) {
    if (value.shape()[d] == 1 || repeats_along(value, d)) continue;
    once.shape.push_back(value.shape()[d]);
    once.strides.push_back(pitches[d]);
    dims.push_back(static_cast<int64_t>(d));
  }
  if (element_count(once.shape) == value.size()) return std::nullopt;
  return r.emit(Op::kBroadcast, {r.constant(gather_view(value, once))}, {{"shape", value.shape()}, {"dims", dims}});
}

// Loops, branches, contractions, packed weights and scatters read buffers: their constant operands are stored, however
// plain they are. Scatters into a constant of one value do not read it.
class Storage {
 public:
  explicit Storage(const ir::Graph& graph) : graph_(graph), readers_(ir::users(graph)) {}

  bool is_stored(ValueId v, const Tensor& value) const {
    return std::any_of(readers_[v].begin(), readers_[v].end(), [&](ir::NodeId id) {
      const Node& reader = graph_.node(id);
      if (reader.op == Op::kDequantize) return true;
      return !ir::is_memory_bound(reader.op) && !(scatters_into(reader, v) && ir::is_splat(value));
    });
  }
  // A broadcast of the constant `small` that is to be a constant itself.
  bool to_store(const Node& node, const Tensor& small) const {
    constexpr int64_t kMost = 1 << 22;
    return node.op == Op::kBroadcast && is_stored(node.outputs[0], small) &&
           element_count(graph_.shape(node.outputs[0])) <= kMost;
  }

 private:
  static bool scatters_into(const Node& node, ValueId v) {
    const bool scatters = node.op == Op::kScatterElements || node.op == Op::kScatterNd;
    return scatters && std::count(node.inputs.begin() + 1, node.inputs.end(), v) == 0;
  }

  const ir::Graph& graph_;
  const std::vector<std::vector<ir::NodeId>> readers_;
};

}  // namespace

std::optional<std::vector<Tensor>> FoldMemo::get(const ir::Node& node, const std::vector<Tensor>& operands,
                                                 const Make& make) {
  constexpr size_t kLarge = 1 << 14;  // bytes from which looking for a result pays
  size_t bytes = 0;
  for (const Tensor& operand : operands) bytes += operand.bytes();
  const std::optional<std::string> key = bytes < kLarge ? std::nullopt : signature(node, operands);
  if (!key) return make();
  if (const auto found = entries_.find(*key); found != entries_.end()) {
    found->second.used = run_;
    return found->second.results;
  }
  auto results = make();
  if (results) entries_.emplace(*key, Entry{operands, *results, run_});
  return results;
}

void FoldMemo::next_run() {
  ++run_;
  std::erase_if(entries_, [&](const auto& entry) { return entry.second.used + 2 < run_; });
}

ir::Graph fold(const ir::Graph& graph, const PassContext& context) {
  const Storage storage(graph);
  return ir::Rewriter(graph).run([&](ir::Rewriter& r, const Node& node) -> std::optional<std::vector<ValueId>> {
    const auto emit = [&](const Tensor& value, ValueId v) {
      const auto wide = storage.is_stored(v, value) ? std::nullopt : as_broadcast(r, value);
      return wide ? *wide : r.constant(value);
    };
    if (node.op == Op::kConstant) return std::vector{emit(node.attrs.tensor("value"), node.outputs[0])};
    const Tensor* small = node.op == Op::kBroadcast ? r.target().constant_of(r(node.inputs[0])) : nullptr;
    if (small != nullptr && storage.to_store(node, *small)) {
      return std::vector{r.constant(gather_view(*small, *apply(StridedView::dense(small->shape()), node)))};
    }
    const auto values = Folder(r.target(), context.folded).run(graph, node, r(node.inputs));
    if (!values) return std::nullopt;
    std::vector<ValueId> results;
    for (size_t i = 0; i < values->size(); ++i) results.push_back(emit((*values)[i], node.outputs[i]));
    return results;
  });
}

}  // namespace heddle::passes
