#include "tests/fuzz/generator_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ir/reference/eval.h"
#include "ir/rewrite.h"

namespace heddle::fuzz {

using ir::Array;
using ir::Ints;
using ir::Op;
using ir::ValueId;

namespace {

// In units of the largest value that may be an operand: what a value inside a move may have (a gather repeats its
// operand up to 81 times), and all values of a graph together.
constexpr int64_t kLargestInside = 100, kLargestGraph = 400;

// Beyond this a value is not used further: f16 would overflow, and differences would drown in rounding.
double largest_for(DType dtype) {
  return dtype == DType::kF16 ? 2e3 : 1e4;
}

Array random_array(Rng& rng, DType dtype, Shape shape) {
  Array array(dtype, std::move(shape));
  if (array.real()) {
    const double spread = rng.chance(0.5) ? 1 : 3;
    for (double& v : array.f()) v = rng.chance(0.03) ? std::round(rng.real(-2, 2)) : rng.real(-spread, spread);
    ir::round_all(dtype, array.f());
  } else {
    for (int64_t& v : array.i())
      v = ir::wrap(dtype, rng.chance(0.05) ? static_cast<int64_t>(rng.bits()) : rng.range(-9, 9));
    if (dtype == DType::kBool) {
      for (int64_t& v : array.i()) v = rng.range(0, 1);
    }
  }
  return array;
}

}  // namespace

State::State(uint64_t seed, const GeneratorOptions& options) : options_(options), rng_(seed), builder_(case_.graph) {
  static const std::vector<DType> mains = {DType::kF32, DType::kF32, DType::kF32, DType::kF32,
                                           DType::kF32, DType::kF32, DType::kF16, DType::kBF16,
                                           DType::kF64, DType::kI64, DType::kI32, DType::kF32};
  static const std::vector<int64_t> small = {1, 2, 3, 4, 5, 7, 8, 11, 16, 17, 24, 31, 33, 64};
  static const std::vector<int64_t> large = {1,  2,  3,  5,   7,   16,  17,  30,  33,   48,
                                             64, 65, 97, 127, 129, 256, 257, 515, 1023, 4096};
  const std::vector<int64_t>& pool = options.memory_bound ? large : small;
  main_ = rng_.pick(mains);
  for (int i = 0; i < 4; ++i) extents_.push_back(rng_.pick(pool));
  if (options.memory_bound) extents_.push_back(rng_.pick(small));
  if (rng_.chance(0.03)) extents_.push_back(0);
  const int64_t parameters = rng_.range(1, 3);
  for (int64_t i = 0; i < parameters; ++i) keep(add_parameter(random_array(rng_, main_, shape(4))));
}

ValueId State::add_parameter(Array array) {
  const ValueId v = graph().parameter(fmt::format("x{}", case_.inputs.size()), {array.dtype, array.shape});
  case_.inputs.push_back(std::move(array));
  return v;
}

void State::evaluate_new() {
  arrays_.resize(graph().value_count());
  for (; evaluated_ < graph().nodes().size(); ++evaluated_) {
    const ir::Node& node = graph().node(static_cast<ir::NodeId>(evaluated_));
    if (node.op == Op::kParameter) {
      for (size_t i = 0; i < case_.inputs.size(); ++i) {
        if (graph().inputs()[i].value == node.outputs[0]) arrays_[node.outputs[0]] = case_.inputs[i];
      }
      continue;
    }
    if (!may_hold(node)) {
      has_oversized_ = true;
      continue;
    }
    std::vector<const Array*> operands;
    for (ValueId v : node.inputs) operands.push_back(&*arrays_[v]);
    std::vector<Array> results = ir::evaluate_node(graph(), node, operands, false);
    for (size_t i = 0; i < results.size(); ++i) {
      elements_ += results[i].size();
      arrays_[node.outputs[i]] = std::move(results[i]);
    }
  }
}

bool State::may_hold(const ir::Node& node) const {
  for (ValueId v : node.inputs) {
    if (!arrays_[v]) return false;
  }
  int64_t elements = elements_;
  for (ValueId v : node.outputs) {
    const int64_t size = element_count(case_.graph.shape(v));
    if (size > kLargestInside * options_.max_elements) return false;
    elements += size;
  }
  return elements <= kLargestGraph * options_.max_elements;
}

Case State::take() {
  if (has_oversized_) case_.graph = ir::drop_dead(case_.graph);
  return std::move(case_);
}

void State::keep(ValueId v) {
  evaluate_new();
  if (!arrays_[v]) return;
  const Array& a = *arrays_[v];
  if (!fits(a.shape)) return;
  if (a.real()) {
    const double largest = largest_for(a.dtype);
    for (double x : a.f()) {
      if (!(std::fabs(x) <= largest)) return;
    }
  }
  values_.push_back(v);
}

Op State::pick_op(const std::vector<Op>& ops) {
  std::vector<Op> allowed;
  for (Op op : ops) {
    if (allows(op)) allowed.push_back(op);
  }
  return allowed.empty() ? ops[0] : rng_.pick(allowed);
}

ValueId State::any() {
  const auto count = static_cast<int64_t>(values_.size());
  if (rng_.chance(0.6)) return values_[static_cast<size_t>(rng_.range(std::max<int64_t>(0, count - 4), count - 1))];
  return rng_.pick(values_);
}

ValueId State::any_float() {
  for (int i = 0; i < 8; ++i) {
    const ValueId v = any();
    if (is_float(builder_.dtype(v))) return v;
  }
  return random_value(DType::kF32, shape(4));
}

ValueId State::any_number() {
  for (int i = 0; i < 8; ++i) {
    const ValueId v = any();
    if (builder_.dtype(v) != DType::kBool) return v;
  }
  return random_value(DType::kF32, shape(4));
}

ValueId State::random_value(DType dtype, Shape shape) {
  Array array = random_array(rng_, dtype, std::move(shape));
  const ValueId v = rng_.chance(0.5) ? add_parameter(std::move(array)) : builder_.constant(ir::to_tensor(array));
  if (rng_.chance(0.3)) keep(v);
  return v;
}

ValueId State::partner(ValueId v) {
  if (rng_.chance(0.7)) {
    std::vector<ValueId> candidates;
    for (ValueId other : values_) {
      if (builder_.dtype(other) != builder_.dtype(v)) continue;
      try {
        if (fits(ir::broadcast_shapes(builder_.shape(v), builder_.shape(other)))) candidates.push_back(other);
      } catch (const Error&) {  // the shapes do not meet
      }
    }
    if (!candidates.empty()) return rng_.pick(candidates);
  }
  return random_value(builder_.dtype(v), thinned(builder_.shape(v)));
}

ValueId State::random_indices(Shape shape, int64_t extent) {
  Array array(rng_.chance(0.5) ? DType::kI64 : DType::kI32, std::move(shape));
  for (int64_t& v : array.i()) v = rng_.range(rng_.chance(0.2) ? -extent : 0, extent - 1);
  return rng_.chance(0.6) ? add_parameter(std::move(array)) : builder_.constant(ir::to_tensor(array));
}

ValueId State::integers(Shape shape, std::vector<int64_t> values) {
  Array array(DType::kI64, std::move(shape));
  array.i() = std::move(values);
  return rng_.chance(0.6) ? add_parameter(std::move(array)) : builder_.constant(ir::to_tensor(array));
}

int64_t State::extent() {
  return rng_.pick(extents_);
}

Shape State::shape(int max_rank) {
  Shape shape(static_cast<size_t>(rng_.chance(0.05) ? 0 : rng_.range(1, max_rank)));
  for (int64_t& e : shape) e = extent();
  while (!fits(shape)) *std::max_element(shape.begin(), shape.end()) = 1;
  return shape;
}

Shape State::thinned(Shape shape) {
  if (rng_.chance(0.3)) return shape;
  const auto drop = rng_.chance(0.6) ? rng_.range(0, static_cast<int64_t>(shape.size())) : 0;
  shape.erase(shape.begin(), shape.begin() + drop);
  for (int64_t& e : shape) e = rng_.chance(0.3) ? 1 : e;
  return shape;
}

Ints State::some_dims(const Shape& shape, bool may_be_empty) {
  Ints dims;
  if (shape.empty()) return dims;
  while (dims.empty()) {
    for (size_t d = 0; d < shape.size(); ++d) {
      if (rng_.chance(d + 1 == shape.size() ? 0.55 : 0.35)) dims.push_back(static_cast<int64_t>(d));
    }
    if (may_be_empty && rng_.chance(0.02)) break;
  }
  return dims;
}

int64_t State::elements_of(const Ints& dims, ValueId v) {
  int64_t count = 1;
  for (int64_t d : dims) count *= builder_.shape(v)[static_cast<size_t>(d)];
  return count;
}

}  // namespace heddle::fuzz
