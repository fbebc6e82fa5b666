#include "passes/quantized/dequantized.h"

#include <algorithm>
#include <cmath>

#include "ir/reference/array.h"
#include "ir/reference/scalar.h"

namespace heddle::passes {
namespace {

bool is_byte(DType type) {
  return type == DType::kI8 || type == DType::kU8;
}

// The dimension of a reshaped tensor that dimension `dim` has become; -1 if there is none.
int64_t reshaped_dim(const Shape& from, const Shape& to, int64_t dim) {
  const auto before = [](const Shape& shape, size_t end) {
    int64_t count = 1;
    for (size_t d = 0; d < end; ++d) count *= shape[d];
    return count;
  };
  const auto at = static_cast<size_t>(dim);
  for (size_t d = 0; d < to.size(); ++d) {
    if (to[d] == from[at] && before(to, d) == before(from, at)) return static_cast<int64_t>(d);
  }
  return -1;
}

// The dimension of a movement's result that dimension `dim` of its operand has become; nullopt if its indices are no
// longer those of the operand.
std::optional<int64_t> moved_dim(const ir::Graph& graph, const Node& node, int64_t dim) {
  const Shape &from = graph.shape(node.inputs[0]), &to = graph.shape(node.outputs[0]);
  const auto at = static_cast<size_t>(dim);
  switch (node.op) {
    case Op::kTranspose: {
      const Ints& perm = node.attrs.ints("perm");
      return std::find(perm.begin(), perm.end(), dim) - perm.begin();
    }
    case Op::kReshape: {
      const int64_t found = reshaped_dim(from, to, dim);
      return found < 0 ? std::nullopt : std::optional(found);
    }
    case Op::kBroadcast: {
      const int64_t found = node.attrs.ints("dims")[at];
      return to[static_cast<size_t>(found)] == from[at] ? std::optional(found) : std::nullopt;
    }
    case Op::kSlice:
      return node.attrs.ints("strides")[at] == 1 && to[at] == from[at] ? std::optional(dim) : std::nullopt;
    default:
      return std::nullopt;
  }
}

}  // namespace

ir::Builder DequantizedFinder::builder() {
  ir::Builder b(r_.target());
  b.set_origins(r_.origins());
  return b;
}

std::optional<Dequantized> DequantizedFinder::find(ValueId value) {
  // A model has few movements between a dequantisation and a product. The stack would not hold all that a file may
  // have.
  constexpr int kDeepest = 64;
  if (const auto at = known_.find(value); at != known_.end()) return at->second;
  std::optional<Dequantized> found;
  if (depth_ < kDeepest) {
    ++depth_;
    found = find_new(value);
    --depth_;
  }
  known_[value] = found;
  return found;
}

std::optional<Dequantized> DequantizedFinder::find_new(ValueId value) {
  if (is_byte(r_.target().dtype(value))) return Dequantized{value, {}, {}};
  const Node node = r_.target().producer(value);
  switch (node.op) {
    case Op::kCast: {
      const DType to = r_.target().dtype(value);
      const bool exact = to == DType::kI16 || to == DType::kI32 || to == DType::kF32;
      const auto found = exact ? find(node.inputs[0]) : std::nullopt;
      return found && found->scale && !is_float(to) ? std::nullopt : found;
    }
    case Op::kSub:
      return after_subtraction(node);
    case Op::kMul:
      return after_multiplication(node);
    case Op::kConcat:
      return concatenated(node);
    case Op::kTranspose:
    case Op::kReshape:
    case Op::kBroadcast:
    case Op::kSlice:
    case Op::kReverse:
    case Op::kGather:
    case Op::kPad:
    case Op::kWindowReduce:
      return moved(value, node);
    default:
      return std::nullopt;
  }
}

std::optional<Dequantized> DequantizedFinder::after_subtraction(const Node& node) {
  auto found = find(node.inputs[0]);
  if (!found || found->zero || found->scale || is_byte(r_.target().dtype(node.outputs[0]))) return std::nullopt;
  auto zero = parameter(node.inputs[1]);
  if (!zero || !is_of(zero->value, {DType::kI8, DType::kU8})) return std::nullopt;
  if (equal(zero, std::nullopt)) return found;
  zero->value = builder().cast(zero->value, DType::kI32);
  found->zero = zero;
  return found;
}

std::optional<Dequantized> DequantizedFinder::after_multiplication(const Node& node) {
  if (r_.target().dtype(node.outputs[0]) != DType::kF32) return std::nullopt;
  for (size_t i = 0; i < 2; ++i) {
    auto found = find(node.inputs[i]);
    if (!found || found->scale) continue;
    found->scale = parameter(node.inputs[1 - i]);
    if (found->scale) return found;
  }
  return std::nullopt;
}

std::optional<Dequantized> DequantizedFinder::moved(ValueId value, const Node& node) {
  auto found = find(node.inputs[0]);
  if (!found) return std::nullopt;
  for (std::optional<QuantParameter>* parameter : {&found->zero, &found->scale}) {
    if (!*parameter || (*parameter)->is_scalar()) continue;
    const auto dim = moved_dim(r_.target(), node, (*parameter)->dim);
    if (!dim) return std::nullopt;
    (*parameter)->dim = *dim;
  }
  ir::Builder b = builder();
  std::vector<ValueId> inputs = {found->q};
  if (node.op == Op::kGather) inputs.push_back(node.inputs[1]);
  if (node.op == Op::kPad) {
    const Tensor* fill = r_.target().constant_of(node.inputs[1]);
    if (fill == nullptr || ir::splat_of(*fill) != 0.0 || node.attrs.text("mode") != "constant") return std::nullopt;
    const DType type = b.dtype(found->q);
    inputs.push_back(found->zero ? b.cast(found->zero->value, type) : b.scalar(type, 0));
  }
  if (node.op == Op::kWindowReduce) {
    // The order of the quantised values is that of the values only if the scale is positive.
    if (node.attrs.text("kind") != "max") return std::nullopt;
    const Tensor* scale = found->scale ? r_.target().constant_of(found->scale->value) : nullptr;
    if (found->scale && (scale == nullptr || !(ir::splat_of(*scale).value_or(0) > 0))) return std::nullopt;
  }
  Attrs attrs = node.attrs;
  found->q = b.emit(node.op, std::move(inputs), std::move(attrs));
  if (b.shape(found->q) != b.shape(value)) return std::nullopt;
  return found;
}

std::optional<Dequantized> DequantizedFinder::concatenated(const Node& node) {
  std::optional<Dequantized> all;
  std::vector<ValueId> parts;
  for (const ValueId input : node.inputs) {
    const auto part = find(input);
    const auto is_scalar = [](const std::optional<QuantParameter>& p) { return !p || p->is_scalar(); };
    if (!part || !is_scalar(part->zero) || !is_scalar(part->scale)) return std::nullopt;
    if (!all) all = part;
    const bool same_type = r_.target().dtype(all->q) == r_.target().dtype(part->q);
    if (!same_type || !equal(all->zero, part->zero) || !equal(all->scale, part->scale)) return std::nullopt;
    parts.push_back(part->q);
  }
  if (all) all->q = builder().concat(parts, node.attrs.integer("dim"));
  return all;
}

std::optional<QuantParameter> DequantizedFinder::parameter(ValueId value) {
  const ir::Graph& graph = r_.target();
  std::vector<DType> casts;
  ValueId small = value;
  for (; graph.producer(small).op == Op::kCast; small = graph.producer(small).inputs[0]) {
    casts.push_back(graph.dtype(small));
  }
  const Node node = graph.producer(small);
  Ints dims;
  for (size_t d = 0; d < graph.shape(small).size(); ++d) dims.push_back(static_cast<int64_t>(d));
  auto found =
      node.op == Op::kBroadcast ? parameter_of(node.inputs[0], node.attrs.ints("dims")) : parameter_of(small, dims);
  for (; found && !casts.empty(); casts.pop_back()) found->value = builder().cast(found->value, casts.back());
  return found;
}

std::optional<QuantParameter> DequantizedFinder::parameter_of(ValueId small, const Ints& dims) {
  ir::Builder b = builder();
  const Shape shape = b.shape(small);
  const int64_t count = element_count(shape);
  if (count == 1) return QuantParameter{shape.empty() ? small : b.reshape(small, {}), -1};
  const auto at = std::find_if(shape.begin(), shape.end(), [](int64_t extent) { return extent != 1; });
  if (at == shape.end() || *at != count) return std::nullopt;
  return QuantParameter{shape.size() == 1 ? small : b.reshape(small, {count}),
                        dims[static_cast<size_t>(at - shape.begin())]};
}

bool DequantizedFinder::is_centred(const Dequantized& operand) {
  return !operand.zero || is_of(operand.zero->value, {r_.target().dtype(operand.q)});
}

// Whether all elements are integers that a byte of one of the types can have.
bool DequantizedFinder::is_of(ValueId value, std::initializer_list<DType> types) {
  const auto has = [&](DType type) { return std::find(types.begin(), types.end(), type) != types.end(); };
  const int low = has(DType::kI8) ? -128 : 0, high = has(DType::kU8) ? 255 : 127;
  for (;; value = r_.target().producer(value).inputs[0]) {
    if (is_byte(r_.target().dtype(value))) return has(r_.target().dtype(value));
    const Op op = r_.target().producer(value).op;
    if (op != Op::kCast && op != Op::kReshape) break;
  }
  const Tensor* known = r_.target().constant_of(value);
  if (known == nullptr) return false;
  const ir::Array array = ir::to_array(*known);
  if (!array.real()) {
    return std::all_of(array.i().begin(), array.i().end(), [&](int64_t x) { return x >= low && x <= high; });
  }
  return std::all_of(array.f().begin(), array.f().end(),
                     [&](double x) { return x >= low && x <= high && x == std::nearbyint(x); });
}

bool DequantizedFinder::is_constant(ValueId value) {
  const ir::Graph& graph = r_.target();
  const ir::NodeId id = graph.value(value).producer;
  while (constant_.size() <= id) {
    const Node& node = graph.node(static_cast<ir::NodeId>(constant_.size()));
    const bool moves = ir::is_elementwise(node.op) || ir::class_of(node.op) == OpClass::kLayout;
    const auto is_known = [&](ValueId v) { return constant_[graph.value(v).producer]; };
    constant_.push_back(node.op == Op::kConstant ||
                        (moves && std::all_of(node.inputs.begin(), node.inputs.end(), is_known)));
  }
  return constant_[id];
}

namespace {

// The numbers of a constant that may have been cast or reshaped; empty for other values.
std::vector<double> numbers(const ir::Graph& graph, ValueId v) {
  while (graph.producer(v).op == Op::kCast || graph.producer(v).op == Op::kReshape) v = graph.producer(v).inputs[0];
  const Tensor* known = graph.constant_of(v);
  if (known == nullptr) return {};
  const ir::Array array = ir::to_array(*known);
  if (array.real()) return array.f();
  return {array.i().begin(), array.i().end()};
}

}  // namespace

bool DequantizedFinder::equal(const std::optional<QuantParameter>& a, const std::optional<QuantParameter>& b) {
  if (!a && !b) return true;
  if (!a || !b) {
    const std::vector<double> all = numbers(r_.target(), (a ? a : b)->value);
    return !all.empty() && std::all_of(all.begin(), all.end(), [](double x) { return x == 0; });
  }
  if (a->dim != b->dim) return false;
  if (a->value == b->value) return true;
  const std::vector<double> x = numbers(r_.target(), a->value);
  return !x.empty() && x == numbers(r_.target(), b->value);
}

}  // namespace heddle::passes
