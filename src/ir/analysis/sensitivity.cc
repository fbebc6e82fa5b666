#include "ir/analysis/sensitivity.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>

#include "base/check.h"
#include "ir/analysis/tolerance.h"
#include "ir/reference/eval.h"

namespace heddle::ir {
namespace {

constexpr size_t kLanes = 3;
// Root mean square of the error of rounding to nearest, in unit roundoffs.
constexpr double kTypicalRounding = 0.4;
// Standard deviations. Fewer than kSafety: here cancellation is seen, and allowed for already.
constexpr double kMeasuredSafety = 6;

using Shared = std::shared_ptr<const Array>;

// One value: exactly, and in every lane. A lane that no noise reached shares the exact array.
struct Lanes {
  Shared exact;
  std::array<Shared, kLanes> noisy;
};

// xorshift64*; uniform with a standard deviation of one.
class Noise {
 public:
  explicit Noise(uint64_t seed) : state_(seed * 2 + 1) {}
  double next() {
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    const auto bits = static_cast<double>((state_ * 0x2545f4914f6cdd1dULL) >> 11);
    return (bits * 0x1p-52 - 1) * 1.7320508075688772;
  }

 private:
  uint64_t state_;
};

void add_noise(Array& array, double error, Noise& noise) {
  const double size = kTypicalRounding * error;
  for (double& v : array.f()) v += v * size * noise.next();
}

bool sums(const Node& node) {
  const OpClass c = class_of(node.op);
  return c == OpClass::kContraction || c == OpClass::kWindow || node.op == Op::kReduce || node.op == Op::kScan;
}

std::vector<Array> evaluate_lane(const Graph& graph, const Node& node, const std::vector<Shared>& operands,
                                 Noise& noise) {
  std::vector<const Array*> pointers;
  pointers.reserve(operands.size());
  for (const Shared& operand : operands) pointers.push_back(operand.get());
  Array first;
  // Partial sums are larger than a sum of terms that cancel, hence are its roundings: they go to the terms.
  if (sums(node) && operands[0]->real()) {
    const double size = rounding_error(graph, node, graph.dtype(node.outputs[0]), false);
    if (size > 0) {
      first = *operands[0];
      add_noise(first, size, noise);
      pointers[0] = &first;
    }
  }
  std::vector<Array> results = evaluate_node(graph, node, pointers, false);
  for (size_t i = 0; i < results.size(); ++i) {
    const double size = rounding_error(graph, node, graph.dtype(node.outputs[i]), false);
    if (results[i].real() && size > 0) add_noise(results[i], size, noise);
  }
  return results;
}

// Whether the errors of this node differ from none.
bool rounds(const Graph& graph, const Node& node) {
  return std::any_of(node.outputs.begin(), node.outputs.end(), [&](ValueId v) {
    return is_float(graph.dtype(v)) && rounding_error(graph, node, graph.dtype(v), false) > 0;
  });
}

void evaluate_in_lanes(const Graph& graph, const Node& node, std::vector<Lanes>& values, Noise& noise) {
  std::vector<Shared> operands;
  operands.reserve(node.inputs.size());
  for (const ValueId v : node.inputs) operands.push_back(values[v].exact);
  std::vector<const Array*> pointers;
  pointers.reserve(operands.size());
  for (const Shared& operand : operands) pointers.push_back(operand.get());
  std::vector<Array> exact = evaluate_node(graph, node, pointers, false);
  for (size_t i = 0; i < exact.size(); ++i) {
    Lanes& lanes = values[node.outputs[i]];
    lanes.exact = std::make_shared<const Array>(std::move(exact[i]));
    lanes.noisy.fill(lanes.exact);
  }
  const bool own = rounds(graph, node);
  for (size_t lane = 0; lane < kLanes; ++lane) {
    bool reached = own;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      operands[i] = values[node.inputs[i]].noisy[lane];
      reached = reached || operands[i] != values[node.inputs[i]].exact;
    }
    if (!reached) continue;
    try {
      std::vector<Array> results = evaluate_lane(graph, node, operands, noise);
      for (size_t i = 0; i < results.size(); ++i) {
        values[node.outputs[i]].noisy[lane] = std::make_shared<const Array>(std::move(results[i]));
      }
    } catch (const Error& error) {
      // Noise moved an index that was computed from floats out of its range: this lane goes on without.
      if (error.code() != ErrorCode::kValueOutOfRange) throw;
    }
  }
}

struct Spread {
  double deviation = 0;  // root mean square over elements and lanes
  double scale = 0;      // root mean square of the exact values
};

Spread spread_of(const Lanes& lanes) {
  Spread spread;
  double deviations = 0, squares = 0, count = 0, compared = 0;
  const std::vector<double>& exact = lanes.exact->f();
  for (const double v : exact) {
    if (!std::isfinite(v)) continue;
    squares += v * v;
    ++count;
  }
  for (const Shared& noisy : lanes.noisy) {
    for (size_t i = 0; i < exact.size(); ++i) {
      const double distance = noisy->f()[i] - exact[i];
      if (!std::isfinite(distance)) continue;
      deviations += distance * distance;
      ++compared;
    }
  }
  if (count > 0) spread.scale = std::sqrt(squares / count);
  if (compared > 0) spread.deviation = std::sqrt(deviations / compared);
  return spread;
}

// `most`: what is forgiven of a tensor, relative to its root mean square. Where noise moves the tensor as a whole by
// less, elements that it moves by more (a probability between no and yes) are few, and forgiven.
std::vector<double> slack_of(const Lanes& lanes, double most) {
  std::vector<double> slack(static_cast<size_t>(lanes.exact->size()), 0);
  if (!lanes.exact->real()) {
    for (const Shared& noisy : lanes.noisy) {
      for (size_t i = 0; i < slack.size(); ++i) {
        const double moved = static_cast<double>(noisy->i()[i]) - static_cast<double>(lanes.exact->i()[i]);
        slack[i] = std::max(slack[i], std::fabs(moved));
      }
    }
    return slack;
  }
  const Spread spread = spread_of(lanes);
  const bool few = kMeasuredSafety * spread.deviation <= most * spread.scale;
  for (size_t i = 0; i < slack.size(); ++i) {
    const double exact = lanes.exact->f()[i];
    if (!std::isfinite(exact)) continue;
    double deviation = spread.deviation;
    for (const Shared& noisy : lanes.noisy) {
      const double distance = std::fabs(noisy->f()[i] - exact);
      if (std::isfinite(distance)) deviation = std::max(deviation, distance);
    }
    slack[i] = kMeasuredSafety * deviation;
    if (!few) slack[i] = std::min(slack[i], most * std::max(std::fabs(exact), spread.scale));
  }
  return slack;
}

// Readers of every value; an output counts as one.
std::vector<size_t> use_counts(const Graph& graph) {
  std::vector<size_t> uses(graph.value_count(), 0);
  for (const Node& node : graph.nodes()) {
    for (const ValueId v : node.inputs) ++uses[v];
  }
  for (const Graph::Port& port : graph.outputs()) ++uses[port.value];
  return uses;
}

}  // namespace

Sensitivity measure_sensitivity(const Graph& graph, const std::vector<Array>& inputs, uint64_t seed) {
  HEDDLE_CHECK(inputs.size() == graph.inputs().size());
  Sensitivity sensitivity;
  sensitivity.bounds.assign(graph.value_count(), 0);
  std::vector<Lanes> values(graph.value_count());
  for (size_t i = 0; i < inputs.size(); ++i) {
    Lanes& lanes = values[graph.inputs()[i].value];
    lanes.exact = std::make_shared<const Array>(inputs[i]);
    lanes.noisy.fill(lanes.exact);
  }
  const std::vector<double> expected = error_bounds(graph);
  const auto most_forgiven = [&](ValueId v) { return std::max(kMostForgiven, expected[v] / 2); };
  Noise noise(seed);
  std::vector<size_t> uses = use_counts(graph);
  for (const Node& node : graph.nodes()) {
    if (node.op == Op::kParameter) continue;
    evaluate_in_lanes(graph, node, values, noise);
    for (const ValueId v : node.outputs) {
      const Lanes& lanes = values[v];
      if (lanes.exact->real()) {
        const Spread spread = spread_of(lanes);
        const double relative = spread.scale > 0 ? spread.deviation / spread.scale : 0;
        sensitivity.bounds[v] = std::min(most_forgiven(v), kMeasuredSafety * relative);
      }
      if (uses[v] == 0) values[v] = {};
    }
    for (const ValueId v : node.inputs) {
      if (--uses[v] == 0) values[v] = {};
    }
  }
  for (const Graph::Port& port : graph.outputs()) {
    sensitivity.slack.push_back(slack_of(values[port.value], most_forgiven(port.value)));
  }
  return sensitivity;
}

}  // namespace heddle::ir
