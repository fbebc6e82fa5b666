#include "ir/analysis/tolerance.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "base/one_of.h"
#include "ir/reference/scalar.h"

namespace heddle::ir {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// Variance of a transcendental function of the tile library, in roundings of f32.
constexpr double kFunctionSteps = 16;
// Variance of a function of the reference library, which may be a small algorithm.
constexpr double kCallSteps = 1024;

// tf32 keeps 10 bits of a fraction; tensor cores may cut the rest off.
constexpr double kTf32Roundoff = 0x1p-10;

// An operand rounded to integers, with one scale for each block: its error has 1 / sqrt(12) of a step as deviation, and
// a step is 2 / 2^bits of the largest element of the block, which is about three times the root mean square.
constexpr double kBlockRange = 2;

double square(double x) {
  return x * x;
}

// Roundings of the accumulator behind one element of a result.
double terms(const Graph& graph, const Node& node) {
  const Shape& x = graph.shape(node.inputs[0]);
  double count = 1;
  const auto extents = [&](const Shape& shape, const Ints& dims) {
    for (int64_t d : dims) count *= static_cast<double>(shape[static_cast<size_t>(d)]);
  };
  switch (node.op) {
    case Op::kReduce:
      extents(x, node.attrs.ints("dims"));
      break;
    case Op::kScan:
      extents(x, {node.attrs.integer("dim")});
      break;
    case Op::kDot:
      extents(x, node.attrs.ints("lhs_contract"));
      break;
    case Op::kConv: {
      const Shape& w = graph.shape(node.inputs[1]);
      for (size_t d = 1; d < w.size(); ++d) count *= static_cast<double>(w[d]);
      break;
    }
    case Op::kWindowReduce:
      for (int64_t extent : node.attrs.ints("window")) count *= static_cast<double>(extent);
      break;
    case Op::kScatterElements:
    case Op::kScatterNd:
      count = std::max<double>(1, static_cast<double>(element_count(graph.shape(node.inputs[1]))));
      break;
    default:
      break;
  }
  return count;
}

bool is_selection(const std::string& kind) {
  return kind == "max" || kind == "min" || kind == "any" || kind == "all" || kind == "none";
}

bool is_exact(const Node& node) {
  using enum Op;
  if (is_elementwise(node.op)) return accuracy_of(node.op) == Accuracy::kExact;
  if (is_one_of(node.op, kTopK, kArgReduce, kParameter, kConstant, kIota)) return true;
  if (is_one_of(node.op, kReduce, kScan, kWindowReduce)) return is_selection(node.attrs.text("kind"));
  if (is_one_of(node.op, kScatterElements, kScatterNd)) return is_selection(node.attrs.text("reduction"));
  return is_one_of(class_of(node.op), OpClass::kLayout, OpClass::kIndexing);
}

double body_variance(const Graph& body) {
  const std::vector<double> bounds = error_bounds(body);
  double worst = 0;
  for (const Graph::Port& port : body.outputs()) worst = std::max(worst, square(bounds[port.value] / kSafety));
  return worst;
}

double trip_count(const Graph& graph, const Node& loop) {
  if (loop.attrs.has("trip")) return static_cast<double>(loop.attrs.integer("trip"));
  const Tensor* trip = graph.constant_of(loop.inputs[0]);
  return trip != nullptr ? std::clamp(real_at(*trip, 0), 1.0, 1e6) : 1e3;
}

// What the node itself adds to the variance of a result of type `to`.
double own_variance(const Graph& graph, const Node& node, DType to, bool rounded_operands) {
  if (is_exact(node)) return 0;
  switch (node.op) {
    case Op::kLoop:
      return trip_count(graph, node) * body_variance(node.attrs.graph("body"));
    case Op::kIf:
      return std::max(body_variance(node.attrs.graph("then")), body_variance(node.attrs.graph("else")));
    case Op::kCast:
      if (is_float(to)) break;
      // An integer near a rounding border moves by one: of the range of a quantised type that is a visible share.
      return rounded_operands && bits_of(to) <= 8 && to != DType::kBool
                 ? square(std::ldexp(1, 1 - bits_of(to)) / kSafety)
                 : 0;
    default:
      break;
  }
  if (!is_float(to)) return 0;
  const double store = unit_roundoff(to);
  const double accumulator = to == DType::kF64 ? store : unit_roundoff(DType::kF32);
  double steps = 0;
  switch (class_of(node.op)) {
    case OpClass::kUnary:
    case OpClass::kBinary:
      steps = accuracy_of(node.op) == Accuracy::kApproximate ? kFunctionSteps : 0;
      break;
    case OpClass::kReduction:
    case OpClass::kWindow:
    case OpClass::kContraction:
    case OpClass::kIndexing:
      steps = terms(graph, node);
      break;
    case OpClass::kCall:
      steps = kCallSteps;
      break;
    default:
      steps = kFunctionSteps;  // random
  }
  // Operands rounded to tf32: each product errs by two roundings, the sum of products by as much, relative to its size.
  double operands = node.attrs.has("tf32") ? 2 * square(kTf32Roundoff) : 0;
  if (node.attrs.has("operand_bits")) {
    operands += square(kBlockRange * std::ldexp(1, static_cast<int>(-node.attrs.integer("operand_bits"))));
  }
  return square(store) + steps * square(accumulator) + operands;
}

double largest_finite(DType dtype) {
  switch (dtype) {
    case DType::kF64:
      return std::numeric_limits<double>::max();
    case DType::kF32:
      return std::numeric_limits<float>::max();
    default:
      return round_to(dtype, dtype == DType::kF16 ? 65504 : dtype == DType::kBF16 ? 0x1.fep127 : 1e300);
  }
}

double root_mean_square(const std::vector<double>& values) {
  double sum = 0, count = 0;
  for (double v : values) {
    if (!std::isfinite(v)) continue;
    sum += v * v;
    ++count;
  }
  return count == 0 ? 0 : std::sqrt(sum / count);
}

void compare_reals(const Array& expected, const Array& actual, std::span<const double> slack, Comparison& result) {
  const double scale = root_mean_square(expected.f());
  const double largest = largest_finite(expected.dtype);
  for (size_t i = 0; i < expected.f().size(); ++i) {
    const double want = expected.f()[i], got = actual.f()[i];
    if (want == got || (std::isnan(want) && std::isnan(got))) continue;
    const double forgiven = slack.empty() ? 0 : slack[i];
    if (std::isinf(forgiven)) continue;
    double error = kInfinity;
    if (std::isfinite(want) && std::isfinite(got)) {
      const double size = std::max(std::fabs(want), scale);
      error = std::max(0.0, std::fabs(got - want) - forgiven) / (size > 0 ? size : 1);
    } else if (std::isfinite(want) && std::isinf(got) && std::fabs(want) * (1 + result.bound) >= largest) {
      continue;
    }
    if (error > result.error) result = {true, error, result.bound, static_cast<int64_t>(i), want, got};
  }
  result.ok = result.error <= result.bound;
}

void compare_integers(const Array& expected, const Array& actual, std::span<const double> slack, Comparison& result) {
  int64_t differing = 0;
  for (size_t i = 0; i < expected.i().size(); ++i) {
    const int64_t want = expected.i()[i], got = actual.i()[i];
    if (want == got || (!slack.empty() && std::fabs(static_cast<double>(want) - static_cast<double>(got)) <= slack[i]))
      continue;
    if (differing++ == 0) {
      result.worst = static_cast<int64_t>(i);
      result.expected = static_cast<double>(want);
      result.actual = static_cast<double>(got);
    }
  }
  if (differing > 0) result.error = static_cast<double>(differing) / static_cast<double>(expected.i().size());
  result.bound = result.bound > 0 ? kFlips : 0;
  result.ok = result.error <= result.bound;
}

}  // namespace

double unit_roundoff(DType dtype) {
  switch (dtype) {
    case DType::kF64:
      return 0x1p-53;
    case DType::kF32:
      return 0x1p-24;
    case DType::kF16:
      return 0x1p-11;
    case DType::kBF16:
      return 0x1p-8;
    case DType::kF8E4M3:
    case DType::kF8E4M3Fnuz:
      return 0x1p-4;
    case DType::kF8E5M2:
    case DType::kF8E5M2Fnuz:
      return 0x1p-3;
    case DType::kF4E2M1:
      return 0x1p-2;
    case DType::kF8E8M0:
      return 0x1p-1;
    default:
      return 0;
  }
}

double rounding_error(const Graph& graph, const Node& node, DType to, bool rounded_operands) {
  return std::sqrt(own_variance(graph, node, to, rounded_operands));
}

std::vector<double> error_bounds(const Graph& graph) {
  std::vector<double> variance(graph.value_count(), 0);
  for (const Node& node : graph.nodes()) {
    double operands = 0;
    for (ValueId v : node.inputs) operands = std::max(operands, variance[v]);
    for (ValueId v : node.outputs) {
      variance[v] = operands + own_variance(graph, node, graph.dtype(v), operands > 0);
    }
  }
  for (double& v : variance) v = kSafety * std::sqrt(v);
  return variance;
}

Comparison compare(const Array& expected, const Array& actual, double bound, std::span<const double> slack) {
  HEDDLE_CHECK(expected.dtype == actual.dtype && expected.shape == actual.shape, "{} against {}",
               to_string(TensorType{expected.dtype, expected.shape}),
               to_string(TensorType{actual.dtype, actual.shape}));
  HEDDLE_CHECK(slack.empty() || static_cast<int64_t>(slack.size()) == expected.size());
  Comparison result;
  result.bound = bound;
  if (expected.real()) {
    compare_reals(expected, actual, slack, result);
  } else {
    compare_integers(expected, actual, slack, result);
  }
  return result;
}

}  // namespace heddle::ir
