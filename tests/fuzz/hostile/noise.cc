#include "tests/fuzz/hostile/noise.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <utility>

#include "ir/analysis/tolerance.h"
#include "ir/reference/eval.h"
#include "ir/rewrite.h"
#include "tests/fuzz/rng.h"

namespace heddle::fuzz {
namespace {

using ir::Array;
using ir::Op;
using ir::OpClass;
using ir::ValueId;

// The deviation that noise shows is multiplied by this; the largest of a few runs underestimates the worst case.
constexpr double kSlack = 8;
// A deviation of this many bounds means that a decision flipped (a comparison, an index): the element tells nothing.
constexpr double kFlip = 300;

bool accumulates(const ir::Node& node) {
  const OpClass c = ir::class_of(node.op);
  return c == OpClass::kContraction || c == OpClass::kWindow || node.op == Op::kReduce || node.op == Op::kScan ||
         c == OpClass::kControl || c == OpClass::kCall;
}

// Results of these are operand elements or decided without rounding, hence exact if the operands are.
bool is_exact(const ir::Node& node) {
  switch (node.op) {
    case Op::kNeg:
    case Op::kAbs:
    case Op::kSign:
    case Op::kFloor:
    case Op::kCeil:
    case Op::kRound:
    case Op::kTrunc:
    case Op::kMax:
    case Op::kMin:
    case Op::kSelect:
    case Op::kTopK:
    case Op::kArgReduce:
    case Op::kIota:
      return true;
    default:
      return ir::class_of(node.op) == OpClass::kLayout || node.op == Op::kGather || node.op == Op::kGatherElements ||
             node.op == Op::kGatherNd;
  }
}

// The sign of a zero that was computed is left open: x + 0 may be x.
Array with_noise(const Array& x, double size, Rng& rng) {
  Array noisy = x;
  for (double& v : noisy.f()) v = v == 0 && rng.chance(0.5) ? -v : v + v * rng.real(-size, size);
  return noisy;
}

// A difference within the rounding of its terms may come out as exactly zero, which random factors never show: what
// divides by it then gives infinity or NaN. So may a remainder, of which a divisor that was itself a difference moves
// more than the last bits.
void cancel(const ir::Node& node, std::span<const Array* const> terms, Array& result, Rng& rng) {
  constexpr double kMoved = 64;
  const bool remainder = node.op == Op::kRem || node.op == Op::kMod;
  if ((node.op != Op::kAdd && node.op != Op::kSub && !remainder) || !result.real()) return;
  const double size = 2 * ir::unit_roundoff(result.dtype) * (remainder ? kMoved : 1);
  const std::vector<double>&a = terms[0]->f(), &b = terms[1]->f();
  for (size_t i = 0; i < result.f().size(); ++i) {
    double& r = result.f()[i];
    const double distance = remainder ? std::min(std::fabs(r), std::fabs(b[i]) - std::fabs(r)) : std::fabs(r);
    if (distance <= size * (std::fabs(a[i]) + std::fabs(b[i])) && rng.chance(0.5)) r = 0;
  }
}

// Zeros of different sign are equal: either is their maximum and minimum.
void pick_zeros(const ir::Node& node, std::span<const Array* const> operands, Array& result, Rng& rng) {
  if ((node.op != Op::kMax && node.op != Op::kMin) || !result.real()) return;
  const std::vector<double>&a = operands[0]->f(), &b = operands[1]->f();
  for (size_t i = 0; i < result.f().size(); ++i) {
    if (a[i] == 0 && b[i] == 0 && std::signbit(a[i]) != std::signbit(b[i]))
      result.f()[i] = rng.chance(0.5) ? 0.0 : -0.0;
  }
}

using Values = std::vector<std::optional<Array>>;

// Takes the values of an evaluation and leaves its own. Some operands are of the one before: what is computed again for
// another use may be rounded in another way.
std::vector<Array> evaluate_noisy(const Case& c, Values& arrays, Rng& rng) {
  constexpr double kAgain = 0.25;
  const ir::Graph& graph = c.graph;
  const Values before = std::exchange(arrays, Values(graph.value_count()));
  std::vector<char> exact(graph.value_count(), 1);
  for (size_t i = 0; i < c.inputs.size(); ++i) arrays[graph.inputs()[i].value] = c.inputs[i];
  const std::vector<bool> live = ir::live_nodes(graph);
  for (ir::NodeId id = 0; id < graph.nodes().size(); ++id) {
    const ir::Node& node = graph.node(id);
    if (node.op == Op::kParameter || !live[id]) continue;
    std::vector<Array> noisy;
    noisy.reserve(node.inputs.size());
    std::vector<const Array*> operands;
    bool all_exact = true;
    double terms = 1;
    if (accumulates(node)) {
      double in = 1, out = 1;
      for (ValueId v : node.inputs) in = std::max(in, static_cast<double>(arrays[v]->size()));
      for (ValueId v : node.outputs) out = std::max(out, static_cast<double>(element_count(graph.shape(v))));
      terms = std::max(4.0, std::min(in / out, in));
    }
    for (ValueId v : node.inputs) {
      const bool again = !before.empty() && !exact[v] && rng.chance(kAgain);
      const Array& x = again ? *before[v] : *arrays[v];
      operands.push_back(&x);
      all_exact &= exact[v] != 0;
      if (!x.real() || (exact[v] && !accumulates(node))) continue;
      const double accumulator = x.dtype == DType::kF64 ? 0x1p-53 : 0x1p-24;
      const double size =
          (exact[v] ? 0 : 2 * ir::unit_roundoff(x.dtype)) + (accumulates(node) ? terms * accumulator : 0);
      noisy.push_back(with_noise(x, size, rng));
      operands.back() = &noisy.back();
    }
    std::vector<Array> results;
    try {
      results = ir::evaluate_node(graph, node, operands, false);
    } catch (const Error& error) {
      // Noise moved an index that was computed from floats.
      if (error.code() != ErrorCode::kValueOutOfRange) throw;
      for (ValueId v : node.outputs) results.emplace_back(graph.dtype(v), graph.shape(v));
    }
    if (!all_exact) cancel(node, operands, results[0], rng);
    pick_zeros(node, operands, results[0], rng);
    for (size_t i = 0; i < results.size(); ++i) {
      exact[node.outputs[i]] = all_exact && (is_exact(node) || !results[i].real() || node.op == Op::kConstant);
      arrays[node.outputs[i]] = std::move(results[i]);
    }
  }
  std::vector<Array> outputs;
  for (const ir::Graph::Port& port : graph.outputs()) outputs.push_back(*arrays[port.value]);
  return outputs;
}

void widen(std::vector<double>& slack, const Array& reference, const Array& moved) {
  for (size_t i = 0; i < slack.size(); ++i) {
    if (reference.real()) {
      const double a = reference.f()[i], b = moved.f()[i];
      if (a == b || (std::isnan(a) && std::isnan(b))) continue;
      const double distance = std::fabs(a - b);
      slack[i] = std::max(slack[i], std::isfinite(distance) ? distance : std::numeric_limits<double>::infinity());
    } else if (reference.i()[i] != moved.i()[i]) {
      slack[i] = std::numeric_limits<double>::infinity();
    }
  }
}

}  // namespace

Reference make_reference(const Case& c, int runs, uint64_t seed) {
  Reference reference;
  reference.outputs = ir::evaluate(c.graph, c.inputs);
  const std::vector<double> bounds = ir::error_bounds(c.graph);
  for (const ir::Graph::Port& port : c.graph.outputs()) reference.bounds.push_back(bounds[port.value]);
  for (const Array& array : reference.outputs) reference.slack.emplace_back(static_cast<size_t>(array.size()), 0.0);

  const auto absorb = [&](const std::vector<Array>& moved) {
    for (size_t o = 0; o < moved.size(); ++o) widen(reference.slack[o], reference.outputs[o], moved[o]);
  };
  Rng rng(seed);
  Values values;
  for (int run = 0; run < runs; ++run) absorb(evaluate_noisy(c, values, rng));
  try {
    absorb(ir::evaluate(c.graph, c.inputs, {.round = true, .observe = {}}));
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kValueOutOfRange) throw;
  }
  for (size_t o = 0; o < reference.outputs.size(); ++o) {
    const Array& array = reference.outputs[o];
    if (!array.real()) continue;
    double square = 0;
    for (double v : array.f()) square += v * v;
    const double scale = std::sqrt(square / std::max<double>(1, static_cast<double>(array.size())));
    for (double& s : reference.slack[o]) {
      s = s > kFlip * reference.bounds[o] * scale ? std::numeric_limits<double>::infinity() : kSlack * s;
    }
  }
  return reference;
}

}  // namespace heddle::fuzz
