#include "passes/quantized/requantized.h"

#include <utility>

#include "ir/reference/scalar.h"

namespace heddle::passes {
namespace {

// The operands of a commutative operation: one that `is` holds for, then the other.
template <typename Is>
std::optional<std::pair<ValueId, ValueId>> operands(const Node& node, const Is& is) {
  for (size_t i = 0; i < 2; ++i) {
    if (is(node.inputs[i])) return std::pair{node.inputs[i], node.inputs[1 - i]};
  }
  return std::nullopt;
}

// x of round(x / scale) + zero, limited to the range of a type.
class Quantisation {
 public:
  Quantisation(DequantizedFinder& finder, const ir::Graph& graph) : finder_(finder), graph_(graph) {}

  std::optional<Dequantized> inverse(const Node& cast, DType to) {
    const auto [low, high] = to == DType::kU8 ? std::pair{0.0, 255.0} : std::pair{-128.0, 127.0};
    const auto above = without(cast.inputs[0], Op::kMin, high);
    const auto inside = above ? without(*above, Op::kMax, low) : std::nullopt;
    if (!inside) return std::nullopt;
    ValueId rounded = *inside;
    std::optional<QuantParameter> zero;
    if (graph_.producer(rounded).op == Op::kAdd) {
      const Node add = graph_.producer(rounded);
      const auto split = operands(add, [&](ValueId v) { return graph_.producer(v).op == Op::kRound; });
      if (!split) return std::nullopt;
      rounded = split->first, zero = finder_.parameter(split->second);
      if (!zero) return std::nullopt;
    }
    if (graph_.producer(rounded).op != Op::kRound) return std::nullopt;
    return ratio(graph_.producer(rounded).inputs[0], zero);
  }

 private:
  std::optional<ValueId> without(ValueId v, Op op, double bound) {
    const Node node = graph_.producer(v);
    if (node.op != op) return std::nullopt;
    const auto split = operands(node, [&](ValueId at) {
      const auto parameter = finder_.parameter(at);
      const Tensor* known = parameter ? graph_.constant_of(parameter->value) : nullptr;
      return known != nullptr && ir::splat_of(*known) == bound;
    });
    return split ? std::optional(split->second) : std::nullopt;
  }

  std::optional<Dequantized> ratio(ValueId v, const std::optional<QuantParameter>& zero) {
    if (graph_.producer(v).op == Op::kCast) v = graph_.producer(v).inputs[0];
    const Node quotient = graph_.producer(v);
    if (quotient.op != Op::kDiv && quotient.op != Op::kMul) return std::nullopt;
    ValueId x = quotient.inputs[0];
    if (graph_.producer(x).op == Op::kCast && graph_.dtype(x) == DType::kF64) x = graph_.producer(x).inputs[0];
    const auto found = finder_.find(x);
    auto scale = finder_.parameter(quotient.inputs[1]);
    if (quotient.op == Op::kMul && scale) {  // by a reciprocal
      const Node reciprocal = graph_.producer(scale->value);
      if (reciprocal.op != Op::kDiv || graph_.dtype(v) != DType::kF64 || !is_one(reciprocal.inputs[0]))
        return std::nullopt;
      scale->value = reciprocal.inputs[1];
    }
    const bool equal =
        found && found->scale && scale && finder_.equal(found->scale, scale) && finder_.equal(found->zero, zero);
    return equal ? found : std::nullopt;
  }

  bool is_one(ValueId v) {
    const auto parameter = finder_.parameter(v);
    const Tensor* known = parameter ? graph_.constant_of(parameter->value) : nullptr;
    return known != nullptr && ir::splat_of(*known) == 1.0;
  }

  DequantizedFinder& finder_;
  const ir::Graph& graph_;
};

}  // namespace

ValueId centred(ir::Builder& b, const Dequantized& operand) {
  if (!operand.zero) return b.cast(operand.q, DType::kI16);
  const Shape shape = b.shape(operand.q);
  const QuantParameter& zero = *operand.zero;
  const ValueId spread = b.broadcast(zero.value, shape, zero.is_scalar() ? Ints{} : Ints{zero.dim});
  return b.cast(b.sub(b.cast(operand.q, DType::kI32), spread), DType::kI16);
}

namespace {

// The quotient of a value and a positive constant, where the value is a sum of scaled integers and other terms:
// the quotient of their scales, which is a constant. nullopt if the value is something else, or has no sum of products:
// the division then costs little, and ties round as they did.
class ScaledQuotient {
 public:
  ScaledQuotient(DequantizedFinder& finder, ir::Rewriter& r, const QuantParameter& divisor)
      : finder_(finder), graph_(r.target()), divisor_(divisor), b_(finder.builder()) {}

  std::optional<ValueId> run(ValueId v) {
    const auto result = of(v, 0);
    return has_sums_ ? result : std::nullopt;
  }

 private:
  std::optional<ValueId> of(ValueId v, int depth) {
    constexpr int kDeepest = 8;
    if (depth > kDeepest) return std::nullopt;
    if (const auto known = finder_.parameter(v); known && finder_.is_constant(known->value)) return spread(*known, v);
    const Node node = graph_.producer(v);
    switch (node.op) {
      case Op::kAdd:
      case Op::kMax:
      case Op::kMin: {
        const auto x = of(node.inputs[0], depth + 1), y = x ? of(node.inputs[1], depth + 1) : std::nullopt;
        return y ? std::optional(b_.binary(node.op, *x, *y)) : std::nullopt;
      }
      case Op::kMul:
        return scaled(node);
      case Op::kReshape:
      case Op::kTranspose: {
        const auto x = of(node.inputs[0], depth + 1);
        return x ? std::optional(b_.emit(node.op, {*x}, node.attrs)) : std::nullopt;
      }
      default:
        return std::nullopt;
    }
  }

  // Integers by a scale.
  std::optional<ValueId> scaled(const Node& node) {
    for (size_t i = 0; i < 2; ++i) {
      const auto scale = finder_.parameter(node.inputs[1 - i]);
      const Node& cast = graph_.producer(node.inputs[i]);
      if (!scale || !finder_.is_constant(scale->value) || cast.op != Op::kCast ||
          !is_int(graph_.dtype(cast.inputs[0]))) {
        continue;
      }
      has_sums_ = has_sums_ || size_of(graph_.dtype(cast.inputs[0])) == 4;
      return b_.mul(node.inputs[i], spread(*scale, node.inputs[1 - i]));
    }
    return std::nullopt;
  }

  ValueId spread(const QuantParameter& number, ValueId like) {
    const Shape small = b_.shape(number.value);
    const ValueId quotient = b_.div(number.value, b_.broadcast(divisor_.value, small, {}));
    return b_.broadcast(quotient, b_.shape(like), number.is_scalar() ? Ints{} : Ints{number.dim});
  }

  DequantizedFinder& finder_;
  const ir::Graph& graph_;
  const QuantParameter& divisor_;
  ir::Builder b_;
  bool has_sums_ = false;  // of products, in 32 bits
};

// x / scale in f64, rounded to f32: as a division in f32, or as a multiplication by the reciprocal in f64 if the target
// does not round divisions in f32. Both are exact: a quotient of numbers of 24 bits is further from the middle between
// two of them than the product errs.
std::optional<ValueId> narrow_division(DequantizedFinder& finder, ir::Rewriter& r, const Node& cast, bool rounds) {
  const ir::Graph& graph = r.source();
  const Node& div = graph.producer(cast.inputs[0]);
  if (graph.dtype(cast.outputs[0]) != DType::kF32 || div.op != Op::kDiv) return std::nullopt;
  if (graph.dtype(div.outputs[0]) != DType::kF64) return std::nullopt;
  const Node& x = graph.producer(div.inputs[0]);
  auto scale = finder.parameter(r(div.inputs[1]));
  if (x.op != Op::kCast || graph.dtype(x.inputs[0]) != DType::kF32 || !scale) return std::nullopt;
  const Node& small = r.target().producer(scale->value);
  if (small.op != Op::kCast || r.target().dtype(small.inputs[0]) != DType::kF32) return std::nullopt;
  ir::Builder b = finder.builder();
  scale->value = small.inputs[0];
  const auto bytes = finder.find(r(x.inputs[0]));  // these may become what they were
  if (scale->is_scalar() && finder.is_constant(scale->value) && !(bytes && bytes->scale)) {
    if (const auto quotient = ScaledQuotient(finder, r, *scale).run(r(x.inputs[0]))) return quotient;
  }
  const Shape& shape = graph.shape(cast.outputs[0]);
  const auto spread = [&](ValueId v) { return b.broadcast(v, shape, scale->is_scalar() ? Ints{} : Ints{scale->dim}); };
  if (rounds) return b.div(r(x.inputs[0]), spread(scale->value));
  const ValueId one = b.full(DType::kF64, b.shape(scale->value), 1);
  const ValueId reciprocal = b.div(one, b.cast(scale->value, DType::kF64));
  return b.cast(b.mul(b.cast(r(x.inputs[0]), DType::kF64), spread(reciprocal)), DType::kF32);
}

}  // namespace

std::optional<ValueId> requantized(DequantizedFinder& finder, ir::Rewriter& r, const Node& cast, const Target& target) {
  const DType to = r.source().dtype(cast.outputs[0]);
  if (to == DType::kF32) return narrow_division(finder, r, cast, target.traits().rounds_divisions);
  if (to != DType::kI8 && to != DType::kU8) return std::nullopt;
  Node moved = cast;
  moved.inputs = r(cast.inputs);
  const auto found = Quantisation(finder, r.target()).inverse(moved, to);
  return found && r.target().dtype(found->q) == to ? std::optional(found->q) : std::nullopt;
}

std::optional<ValueId> dequantized_from_shorts(DequantizedFinder& finder, ir::Rewriter& r, const Node& mul) {
  if (r.source().dtype(mul.outputs[0]) != DType::kF32) return std::nullopt;
  ir::Builder b = finder.builder();
  const ValueId whole = b.mul(r(mul.inputs[0]), r(mul.inputs[1]));
  const auto found = finder.find(whole);
  if (!found || !found->scale || finder.is_constant(found->q)) return std::nullopt;
  const Shape& shape = r.source().shape(mul.outputs[0]);
  const QuantParameter& scale = *found->scale;
  const ValueId by = b.broadcast(scale.value, shape, scale.is_scalar() ? Ints{} : Ints{scale.dim});
  const ValueId result = b.mul(b.cast(centred(b, *found), DType::kF32), by);
  return result;
}

}  // namespace heddle::passes
