#include <algorithm>
#include <cmath>

#include "ir/analysis/sign.h"
#include "passes/rewrite/emitter.h"

namespace heddle::passes {
namespace {

using Result = std::optional<ValueId>;

bool equals(const Match& m, size_t operand, double value) {
  return m.e.splat(m.in[operand]) == value;
}
ValueId first(const Match& m, size_t operand) {
  return m.e.def(m.in[operand]).inputs[0];
}
bool is_float(const Match& m) {
  return heddle::is_float(m.e.dtype(m.in[0]));
}
// True if one rounding more or less does not matter, as between a quotient and a product by a reciprocal. It matters if
// a decision follows, in f64, which users choose to get every bit, and in f16, where the reciprocal of a large number
// is subnormal.
bool rounds_alike(const Match& m) {
  return m.e.dtype(m.in[0]) == DType::kF32 && !m.e.feeds_decision();
}
bool is_normal(DType dtype, double value) {
  return std::isnormal(dtype == DType::kF32 ? static_cast<float>(value) : round_to(dtype, value)) &&
         std::fabs(value) < 1e30;
}

// ---- any elementwise op ----

// Constants stand on the right.
Result constant_right(const Match& m) {
  if (!m.e.is_constant(m.in[0]) || m.e.is_constant(m.in[1])) return {};
  return m.e.binary(m.op, m.in[1], m.in[0]);
}

// What is the same for many elements is computed once: op(broadcast(a), broadcast(b)) = broadcast(op(a, b)).
Result under_broadcast(const Match& m) {
  const Node* widest = nullptr;  // the broadcast whose dims all others follow
  for (ValueId v : m.in) {
    const Node& node = m.e.def(v);
    if (node.op != Op::kBroadcast) return {};
    if (widest == nullptr || node.attrs.ints("dims").size() > widest->attrs.ints("dims").size()) widest = &node;
  }
  const Ints dims = widest->attrs.ints("dims");
  const Shape inner = m.e.shape(widest->inputs[0]);
  if (element_count(inner) >= m.e.count(m.in[0])) return {};
  std::vector<ValueId> operands;
  for (ValueId v : m.in) {
    const Node& node = m.e.def(v);
    Ints into;
    for (int64_t d : node.attrs.ints("dims")) into.push_back(index_of(dims, d));
    if (index_of(into, -1) >= 0) return {};
    operands.push_back(node.inputs[0]);
    const Shape& from = m.e.shape(node.inputs[0]);
    for (size_t i = 0; i < into.size(); ++i) {
      if (from[i] != inner[static_cast<size_t>(into[i])]) return {};
    }
    operands.back() = m.e.broadcast(operands.back(), inner, into);
  }
  const ValueId small = m.e.emit(m.op, operands, m.attrs);
  return m.e.broadcast(small, m.e.shape(m.in[0]), dims);
}

// Reshapes go behind the op: any of them where the other operands are scalars, and those that only add or drop
// dimensions of extent 1 where the other operands have or are easily given the inner shape, too.
Result reshape_last(const Match& m) {
  const auto is_reshape = [&](ValueId v) { return m.e.is(v, Op::kReshape); };
  const auto found = std::find_if(m.in.begin(), m.in.end(), is_reshape);
  if (found == m.in.end()) return {};
  const Shape inner = m.e.shape(m.e.def(*found).inputs[0]), outer = m.e.shape(m.in[0]);
  const auto strip = [](Shape shape) {
    std::erase(shape, 1);
    return shape;
  };
  const bool only_ones = strip(inner) == strip(outer);
  std::vector<ValueId> operands;
  for (ValueId v : m.in) {
    const bool same = is_reshape(v) && m.e.shape(m.e.def(v).inputs[0]) == inner;
    const bool easy = is_reshape(v) || m.e.is_constant(v) || m.e.is(v, Op::kBroadcast);
    if (!same && !m.e.splat(v) && !(only_ones && easy)) return {};
    operands.push_back(m.e.reshape(v, inner));
  }
  return m.e.reshape(m.e.emit(m.op, operands, m.attrs), outer);
}

// ---- addition ----

Result add_zero(const Match& m) {
  if (!equals(m, 1, 0)) return {};
  return m.in[0];
}
Result add_neg(const Match& m) {
  const auto negated = [&](size_t i) { return m.e.is(m.in[i], Op::kNeg) && !m.e.is_constant(first(m, i)); };
  if (negated(1)) return m.e.binary(Op::kSub, m.in[0], first(m, 1));
  if (negated(0) && !m.e.is_constant(m.in[1])) return m.e.binary(Op::kSub, m.in[1], first(m, 0));
  return {};
}
Result sub_zero(const Match& m) {
  if (equals(m, 1, 0)) return m.in[0];
  if (equals(m, 0, 0)) return m.e.unary(Op::kNeg, m.in[1]);
  return {};
}
// Subtracting a constant is adding its negative, so that later passes know one form.
Result sub_constant(const Match& m) {
  if (!is_float(m) || !m.e.is_constant(m.in[1]) || m.e.is_constant(m.in[0])) return {};
  return m.e.binary(Op::kAdd, m.in[0], m.e.unary(Op::kNeg, m.in[1]));
}
Result sub_neg(const Match& m) {
  if (!m.e.is(m.in[1], Op::kNeg)) return {};
  return m.e.binary(Op::kAdd, m.in[0], first(m, 1));
}

// ---- multiplication, division, power ----

Result mul_identity(const Match& m) {
  if (equals(m, 1, 1)) return m.in[0];
  if (equals(m, 1, -1)) return m.e.unary(Op::kNeg, m.in[0]);
  if (!is_float(m) && equals(m, 1, 0)) return m.in[1];
  return {};
}
Result mul_neg(const Match& m) {
  const auto c = m.e.splat(m.in[1]);
  if (!c || !is_float(m) || !m.e.is(m.in[0], Op::kNeg)) return {};
  return m.e.binary(Op::kMul, first(m, 0), m.e.full_like(m.in[0], -*c));
}
// (x * a) * b = x * (a * b), if no x * a overflows or underflows where the result does not.
Result mul_twice(const Match& m) {
  const auto b = m.e.splat(m.in[1]);
  if (!b || !rounds_alike(m) || !m.e.is(m.in[0], Op::kMul)) return {};
  const Node& inner = m.e.def(m.in[0]);
  const auto a = m.e.splat(inner.inputs[1]);
  if (!a || !is_normal(DType::kF32, *a * *b)) return {};
  const double first = std::fabs(*a), second = std::fabs(*b);
  if ((first < 1 && second > 1) || (first > 1 && second < 1)) return {};
  return m.e.binary(Op::kMul, inner.inputs[0], m.e.full_like(m.in[0], *a * *b));
}
// A sum divided by its count stays a division, so that a mean is rounded once.
bool is_sum(Emitter& e, ValueId v) {
  while (e.is(v, Op::kReshape) || e.is(v, Op::kBroadcast) || e.is(v, Op::kTranspose)) v = e.def(v).inputs[0];
  const Op op = e.def(v).op;
  return (op == Op::kReduce || op == Op::kWindowReduce) && e.def(v).attrs.text("kind") == "sum";
}
Result div_constant(const Match& m) {
  const auto c = m.e.splat(m.in[1]);
  if (c == 1) return m.in[0];
  if (!c || !is_float(m) || !is_normal(m.e.dtype(m.in[0]), *c) || !is_normal(m.e.dtype(m.in[0]), 1 / *c)) return {};
  int exponent = 0;
  const bool exact = std::fabs(std::frexp(*c, &exponent)) == 0.5;
  if (!exact && (!rounds_alike(m) || is_sum(m.e, m.in[0]))) return {};
  return m.e.binary(Op::kMul, m.in[0], m.e.full_like(m.in[0], 1 / *c));
}
// Where a node's results lie that are neither 0 nor infinite, in f32 and narrower types; none is negative.
struct Range {
  double least, most;
};
bool is_softmax_sum(Emitter& e, const Node& sum) {
  if (sum.attrs.text("kind") != "sum" || !e.is(sum.inputs[0], Op::kExp)) return false;
  const Node& difference = e.def(e.def(sum.inputs[0]).inputs[0]);
  if (difference.op != Op::kSub || !e.is(difference.inputs[1], Op::kBroadcast)) return false;
  ValueId largest = e.def(difference.inputs[1]).inputs[0];
  while (e.is(largest, Op::kReshape)) largest = e.def(largest).inputs[0];
  const Node& reduce = e.def(largest);
  return reduce.op == Op::kReduce && reduce.attrs.text("kind") == "max" && reduce.inputs[0] == difference.inputs[0] &&
         reduce.attrs.ints("dims") == sum.attrs.ints("dims");
}
std::optional<Range> range_of(Emitter& e, ValueId v, int depth = 0) {
  constexpr int kDeepest = 8;
  if (depth > kDeepest || !heddle::is_float(e.dtype(v)) || e.dtype(v) == DType::kF64) return std::nullopt;
  if (const auto c = e.splat(v)) return *c > 0 ? std::optional(Range{*c, *c}) : std::nullopt;
  const Node& node = e.def(v);
  switch (node.op) {
    case Op::kCast:
    case Op::kReshape:
    case Op::kBroadcast:
    case Op::kTranspose:
      return range_of(e, node.inputs[0], depth + 1);
    case Op::kSqrt:
      return Range{0x1p-75, 0x1p64};
    case Op::kAdd:
    case Op::kMin:
    case Op::kMax: {
      const auto a = range_of(e, node.inputs[0], depth + 1), b = range_of(e, node.inputs[1], depth + 1);
      if (!a || !b) return std::nullopt;
      return Range{std::min(a->least, b->least), a->most + b->most};
    }
    case Op::kReduce:  // the largest term is 1
      if (!is_softmax_sum(e, node)) return std::nullopt;
      return Range{0.5, 2 * static_cast<double>(e.count(node.inputs[0]))};
    default:
      return std::nullopt;
  }
}
bool has_normal_reciprocal(Emitter& e, ValueId v) {
  const auto normal = [](double x) { return is_normal(DType::kF32, x) && is_normal(DType::kF32, 1 / x); };
  const Node& node = e.def(v);
  if (node.op == Op::kConstant) {
    const std::span<const float> values = node.attrs.tensor("value").values<float>();
    return std::all_of(values.begin(), values.end(), normal);
  }
  const auto range = range_of(e, v);
  return range && normal(range->least) && normal(range->most);
}
// x / broadcast(y) = x * broadcast(1 / y): one division per element of y. Where 1 / y may leave f32's normal numbers,
// kernels share the reciprocal and correct each quotient.
Result div_broadcast(const Match& m) {
  if (!rounds_alike(m) || !m.e.is(m.in[1], Op::kBroadcast) || m.e.splat(m.in[1])) return {};
  if (m.e.is(m.in[0], Op::kBroadcast) || (is_sum(m.e, m.in[0]) && m.e.is_constant(m.in[1]))) return {};
  const Node& wide = m.e.def(m.in[1]);
  const ValueId y = wide.inputs[0];
  if (m.e.count(y) > m.e.count(m.in[1]) / 2 || !has_normal_reciprocal(m.e, y)) return {};
  const ValueId reciprocal = m.e.binary(Op::kDiv, m.e.full_like(y, 1), y);
  return m.e.binary(Op::kMul, m.in[0], m.e.broadcast(reciprocal, m.e.shape(m.in[1]), wide.attrs.ints("dims")));
}
Result div_sqrt(const Match& m) {
  if (!rounds_alike(m) || !m.e.is(m.in[1], Op::kSqrt)) return {};
  const ValueId root = m.e.unary(Op::kRsqrt, first(m, 1));
  return equals(m, 0, 1) ? root : m.e.binary(Op::kMul, m.in[0], root);
}
// x^0.5 and x^-0.5 are the root and its reciprocal except at -infinity, whose root is NaN, and at -0, whose root is -0.
ValueId root_power(const Match& m, Op root, double of_infinity) {
  const ValueId x = m.in[0], y = m.e.unary(root, x);
  if (ir::sign_of(m.e.graph(), x) == ir::Sign::kNoSignBit) return y;
  const ValueId infinite = m.e.binary(Op::kEq, x, m.e.full_like(x, -HUGE_VAL));
  return m.e.emit(Op::kSelect, {infinite, m.e.full_like(x, of_infinity), m.e.unary(Op::kAbs, y)});
}
Result pow_constant(const Match& m) {
  const auto c = m.e.splat(m.in[1]);
  const ValueId x = m.in[0];
  if (!c || !is_float(m)) return {};
  if (*c == 0) return m.e.full_like(x, 1);
  if (*c == 1) return x;
  if (*c == 2) return m.e.binary(Op::kMul, x, x);
  if (*c == 3) return m.e.binary(Op::kMul, m.e.binary(Op::kMul, x, x), x);
  if (*c == 0.5) return root_power(m, Op::kSqrt, HUGE_VAL);
  if (*c == -0.5) return root_power(m, Op::kRsqrt, 0);
  if (*c == -1) return m.e.binary(Op::kDiv, m.e.full_like(x, 1), x);
  return {};
}

// ---- unary ----

// op(op(x)) = x
Result twice_is_identity(const Match& m) {
  if (!m.e.is(m.in[0], m.op)) return {};
  return first(m, 0);
}
// op(op(x)) = op(x)
Result twice_is_once(const Match& m) {
  if (!m.e.is(m.in[0], m.op)) return {};
  return m.in[0];
}
Result abs_neg(const Match& m) {
  // An unsigned neg wraps: its abs is not that of its operand.
  if (!m.e.is(m.in[0], Op::kNeg) || is_unsigned_int(m.e.dtype(m.in[0]))) return {};
  return m.e.unary(Op::kAbs, first(m, 0));
}

// Whether every value of `from` is a value of `to`.
bool is_lossless(DType from, DType to) {
  if (from == to) return true;
  if (from == DType::kBool) return true;
  if (heddle::is_float(from)) {
    const bool small = from != DType::kF64 && from != DType::kF32;
    return to == DType::kF64 || (to == DType::kF32 && small && from != DType::kF8E8M0);
  }
  if (heddle::is_float(to)) {
    const int bits = bits_of(from);
    return (to == DType::kF64 && bits <= 32) || (to == DType::kF32 && bits <= 16) || (to == DType::kF16 && bits <= 8);
  }
  if (to == DType::kBool) return false;
  if (is_signed_int(from)) return is_signed_int(to) && bits_of(to) >= bits_of(from);
  return bits_of(to) > bits_of(from) || (is_unsigned_int(to) && bits_of(to) == bits_of(from));
}
Result cast_identity(const Match& m) {
  if (m.attrs.dtype("to") != m.e.dtype(m.in[0])) return {};
  return m.in[0];
}
// A cast through a wider type can be skipped, except that floats saturate on the way to an integer type and integers
// wrap.
Result cast_cast(const Match& m) {
  if (!m.e.is(m.in[0], Op::kCast)) return {};
  const ValueId x = first(m, 0);
  const DType from = m.e.dtype(x), through = m.e.dtype(m.in[0]), to = m.attrs.dtype("to");
  if (!is_lossless(from, through)) return {};
  if (is_int(from) && heddle::is_float(through) && is_int(to) && !is_lossless(from, to)) return {};
  return m.e.emit(Op::kCast, {x}, m.attrs);
}

// Packed weights are widened to the type that is read.
Result cast_dequantized(const Match& m) {
  const DType to = m.attrs.dtype("to");
  if (!m.e.is(m.in[0], Op::kDequantize) || (to != DType::kF16 && to != DType::kBF16)) return {};
  if (m.e.dtype(m.in[0]) != DType::kF32) return {};
  const Node node = m.e.def(m.in[0]);
  ir::Attrs attrs = node.attrs;
  attrs.set("dtype", to);
  return m.e.emit(Op::kDequantize, node.inputs, std::move(attrs));
}

// The bounds of an integer type need not be applied before a cast to it, which saturates.
Result cast_clamped(const Match& m) {
  const DType to = m.attrs.dtype("to");
  if (!is_int(to) || bits_of(to) > 16 || !heddle::is_float(m.e.dtype(m.in[0]))) return {};
  const bool is_min = m.e.is(m.in[0], Op::kMin);
  if (!is_min && !m.e.is(m.in[0], Op::kMax)) return {};
  const double span = static_cast<double>(int64_t{1} << bits_of(to));
  const double low = is_unsigned_int(to) ? 0 : -span / 2, high = low + span - 1;
  for (size_t i = 0; i < 2; ++i) {
    const auto bound = m.e.splat(m.e.def(m.in[0]).inputs[i]);
    if (bound && (is_min ? *bound >= high : *bound <= low)) {
      return m.e.emit(Op::kCast, {m.e.def(m.in[0]).inputs[1 - i]}, m.attrs);
    }
  }
  return {};
}

// ---- extrema, logic, select ----

Result same_operands(const Match& m) {
  if (m.in[0] != m.in[1]) return {};
  return m.in[0];
}
Result and_constant(const Match& m) {
  if (m.e.dtype(m.in[0]) != DType::kBool) return {};
  if (equals(m, 1, 1)) return m.in[0];
  if (equals(m, 1, 0)) return m.in[1];
  return {};
}
Result or_constant(const Match& m) {
  if (m.e.dtype(m.in[0]) != DType::kBool) return {};
  if (equals(m, 1, 0)) return m.in[0];
  if (equals(m, 1, 1)) return m.in[1];
  return {};
}
Result select_constant(const Match& m) {
  if (m.in[1] == m.in[2]) return m.in[1];
  if (const auto c = m.e.splat(m.in[0])) return *c != 0 ? m.in[1] : m.in[2];
  return {};
}
Result select_not(const Match& m) {
  if (!m.e.is(m.in[0], Op::kNot)) return {};
  return m.e.emit(Op::kSelect, {first(m, 0), m.in[2], m.in[1]});
}

std::vector<Rule> make_rules() {
  std::vector<Rule> rules;
  for (Op op : {Op::kAdd, Op::kMul, Op::kMax, Op::kMin, Op::kAnd, Op::kOr, Op::kXor, Op::kEq, Op::kNe}) {
    rules.push_back({op, "constant_right", constant_right});
  }
  const Rule table[] = {
      {Op::kAdd, "add_zero", add_zero},
      {Op::kAdd, "add_neg", add_neg},
      {Op::kSub, "sub_zero", sub_zero},
      {Op::kSub, "sub_constant", sub_constant},
      {Op::kSub, "sub_neg", sub_neg},
      {Op::kMul, "mul_identity", mul_identity},
      {Op::kMul, "mul_neg", mul_neg},
      {Op::kMul, "mul_twice", mul_twice},
      {Op::kDiv, "div_constant", div_constant},
      {Op::kDiv, "div_broadcast", div_broadcast},
      {Op::kDiv, "div_sqrt", div_sqrt},
      {Op::kPow, "pow_constant", pow_constant},
      {Op::kNeg, "twice_is_identity", twice_is_identity},
      {Op::kNot, "twice_is_identity", twice_is_identity},
      {Op::kAbs, "twice_is_once", twice_is_once},
      {Op::kAbs, "abs_neg", abs_neg},
      {Op::kFloor, "twice_is_once", twice_is_once},
      {Op::kCeil, "twice_is_once", twice_is_once},
      {Op::kRound, "twice_is_once", twice_is_once},
      {Op::kTrunc, "twice_is_once", twice_is_once},
      {Op::kSign, "twice_is_once", twice_is_once},
      {Op::kCast, "cast_identity", cast_identity},
      {Op::kCast, "cast_cast", cast_cast},
      {Op::kCast, "cast_dequantized", cast_dequantized},
      {Op::kCast, "cast_clamped", cast_clamped},
      {Op::kMax, "same_operands", same_operands},
      {Op::kMin, "same_operands", same_operands},
      {Op::kAnd, "same_operands", same_operands},
      {Op::kOr, "same_operands", same_operands},
      {Op::kAnd, "and_constant", and_constant},
      {Op::kOr, "or_constant", or_constant},
      {Op::kSelect, "select_constant", select_constant},
      {Op::kSelect, "select_not", select_not},
  };
  rules.insert(rules.end(), std::begin(table), std::end(table));
  for (const Op op : ir::elementwise_ops()) {
    rules.push_back({op, "under_broadcast", under_broadcast});
    rules.push_back({op, "reshape_last", reshape_last});
  }
  return rules;
}

}  // namespace

std::span<const Rule> arithmetic_rules() {
  static const std::vector<Rule> rules = make_rules();
  return rules;
}

}  // namespace heddle::passes
