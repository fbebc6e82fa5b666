#include "ir/analysis/sign.h"

#include <algorithm>
#include <cmath>

#include "ir/reference/scalar.h"

namespace heddle::ir {
namespace {

// True if each window of a reduction contains an element of its operand.
bool has_full_windows(const Node& node) {
  const Ints &window = node.attrs.ints("window"), &low = node.attrs.ints("low"), &high = node.attrs.ints("high");
  const Ints& dilations = node.attrs.ints("dilations");
  for (size_t d = 0; d < window.size(); ++d) {
    if (low[d] >= window[d] || high[d] >= window[d] || dilations[d] != 1) return false;
  }
  return true;
}

Sign of_constant(const Tensor& value) {
  constexpr int64_t kMostSearched = 1 << 16;
  const auto splat = value.size() <= kMostSearched ? splat_of(value) : std::nullopt;
  return splat && !std::signbit(*splat) ? Sign::kNoSignBit : Sign::kAny;
}

Sign of(const Graph& graph, ValueId value, int depth);

// The sign of a reduction's result.
Sign of_reduction(const Graph& graph, const Node& node, Sign operand) {
  const auto& kind = node.attrs.text("kind");
  if (kind == "sum") return operand;
  // The maximum of no elements is -infinity.
  const bool has_elements =
      element_count(graph.shape(node.inputs[0])) > 0 && (node.op == Op::kReduce || has_full_windows(node));
  return has_elements && (kind == "max" || kind == "min") ? operand : Sign::kAny;
}

Sign of_node(const Graph& graph, const Node& node, int depth) {
  const auto operand = [&](size_t i) { return of(graph, node.inputs[i], depth + 1); };
  switch (node.op) {
    case Op::kConstant:
      return of_constant(node.attrs.tensor("value"));
    case Op::kAbs:
    case Op::kExp:
      return Sign::kNoSignBit;
    case Op::kSqrt:
    case Op::kCast:
    case Op::kReshape:
    case Op::kBroadcast:
    case Op::kTranspose:
      return operand(0);
    case Op::kMul:
      if (node.inputs[0] == node.inputs[1]) return Sign::kNoSignBit;
      return std::min(operand(0), operand(1));
    case Op::kAdd:
    case Op::kMin:
      return std::min(operand(0), operand(1));
    case Op::kMax: {
      // The maximum of -0 and +0 may be either.
      const Sign a = operand(0), b = operand(1);
      return std::max(std::min(a, b), std::min(Sign::kNotNegative, std::max(a, b)));
    }
    case Op::kDiv:
      return operand(1) == Sign::kNoSignBit ? operand(0) : Sign::kAny;
    case Op::kReduce:
    case Op::kWindowReduce:
      return of_reduction(graph, node, operand(0));
    default:
      return Sign::kAny;
  }
}

Sign of(const Graph& graph, ValueId value, int depth) {
  constexpr int kDeepest = 8;
  const DType type = graph.dtype(value);
  if (is_int(type) || type == DType::kBool) return is_signed_int(type) ? Sign::kAny : Sign::kNoSignBit;
  return depth > kDeepest ? Sign::kAny : of_node(graph, graph.producer(value), depth);
}

}  // namespace

Sign sign_of(const Graph& graph, ValueId value) {
  return of(graph, value, 0);
}

}  // namespace heddle::ir
