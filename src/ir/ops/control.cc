#include <algorithm>

#include "ir/ops/families.h"
#include "ir/ops/rules.h"
#include "ir/reference/eval.h"

namespace heddle::ir {
namespace {

const TensorType kCondition = {DType::kBool, {}};
const TensorType kCounter = {DType::kI64, {}};

void require_body_inputs(const char* name, const Graph& body, OperandTypes expected) {
  require(body.inputs().size() == expected.size(), "{} has {} parameters, {} expected", name, body.inputs().size(),
          expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    const TensorType& type = body.type(body.inputs()[i].value);
    require(type == expected[i], "parameter {} of {} is {}, {} expected", i, name, type, expected[i]);
  }
}

std::vector<TensorType> infer_loop(const InferContext& context) {
  const Graph& body = context.attrs.graph("body");
  const int64_t states = context.attrs.integer("states"), scans = context.attrs.integer("scans");
  const auto operands = context.inputs;
  require(states >= 0 && states <= static_cast<int64_t>(operands.size()) - 2, "{} states of {} operands", states,
          operands.size());
  require(operands[0] == kCounter && operands[1] == kCondition,
          "the first operands are {} and {}; i64[] and bool[] expected", operands[0], operands[1]);
  require_body_inputs("body", body, operands);
  const auto& results = body.outputs();
  require(scans >= 0 && static_cast<int64_t>(results.size()) - 1 - states == scans,
          "body has {} results; a condition, {} states and {} slices expected", results.size(), states, scans);
  require(body.type(results[0].value) == kCondition, "the body's first result is {}, bool[] expected",
          body.type(results[0].value));
  int64_t trip = 0;
  if (context.attrs.has("trip")) {
    trip = context.attrs.integer("trip");
    require(trip >= 0, "trip is {}", trip);
  } else {
    require(scans == 0, "a loop with stacked results needs the attribute trip");
  }
  std::vector<TensorType> types;
  for (int64_t s = 0; s < states; ++s) {
    types.push_back(operands[2 + s]);
    const TensorType& type = body.type(results[1 + s].value);
    require(type == types.back(), "state {} enters the body as {} and leaves it as {}", s, types.back(), type);
  }
  for (int64_t s = 0; s < scans; ++s) {
    TensorType type = body.type(results[1 + states + s].value);
    type.shape.insert(type.shape.begin(), trip);
    types.push_back(std::move(type));
  }
  return types;
}

void store_slice(const Array& slice, int64_t index, Array& stacked) {
  const auto at = index * slice.size();
  if (slice.real()) {
    std::copy(slice.f().begin(), slice.f().end(), stacked.f().begin() + at);
  } else {
    std::copy(slice.i().begin(), slice.i().end(), stacked.i().begin() + at);
  }
}

std::vector<Array> eval_loop(const EvalContext& context) {
  const Graph& body = context.attrs.graph("body");
  const auto states = static_cast<size_t>(context.attrs.integer("states"));
  const auto operands = context.inputs;
  int64_t trip = operands[0]->i()[0];
  if (context.attrs.has("trip")) trip = std::min(trip, context.attrs.integer("trip"));
  Array condition = *operands[1];
  std::vector<Array> results;
  for (size_t s = 0; s < states; ++s) results.push_back(*operands[2 + s]);
  for (size_t s = states; s < context.outputs.size(); ++s) {
    results.emplace_back(context.outputs[s].dtype, context.outputs[s].shape);
  }
  for (int64_t iteration = 0; iteration < trip && condition.i()[0] != 0; ++iteration) {
    Array counter(DType::kI64, {});
    counter.i()[0] = iteration;
    std::vector<Array> inputs;
    inputs.reserve(operands.size());
    inputs.push_back(std::move(counter));
    inputs.push_back(std::move(condition));
    for (size_t s = 0; s < states; ++s) inputs.push_back(std::move(results[s]));
    for (size_t i = 2 + states; i < operands.size(); ++i) inputs.push_back(*operands[i]);
    std::vector<Array> produced = evaluate(body, std::move(inputs), {.round = context.round, .observe = {}});
    condition = std::move(produced[0]);
    for (size_t s = 0; s < states; ++s) results[s] = std::move(produced[1 + s]);
    for (size_t s = states; s < results.size(); ++s) store_slice(produced[1 + s], iteration, results[s]);
  }
  return results;
}

std::vector<TensorType> infer_if(const InferContext& context) {
  const Graph &then = context.attrs.graph("then"), &other = context.attrs.graph("else");
  require(context.inputs[0] == kCondition, "the condition is {}, bool[] expected", context.inputs[0]);
  require_body_inputs("then", then, context.inputs.subspan(1));
  require_body_inputs("else", other, context.inputs.subspan(1));
  require(then.outputs().size() == other.outputs().size(), "the branches have {} and {} results", then.outputs().size(),
          other.outputs().size());
  std::vector<TensorType> types;
  for (size_t i = 0; i < then.outputs().size(); ++i) {
    types.push_back(then.type(then.outputs()[i].value));
    const TensorType& type = other.type(other.outputs()[i].value);
    require(type == types.back(), "result {} is {} in one branch and {} in the other", i, types.back(), type);
  }
  return types;
}

std::vector<Array> eval_if(const EvalContext& context) {
  std::vector<Array> inputs;
  for (size_t i = 1; i < context.inputs.size(); ++i) inputs.push_back(*context.inputs[i]);
  const Graph& body = context.attrs.graph(context.inputs[0]->i()[0] != 0 ? "then" : "else");
  return evaluate(body, std::move(inputs), {.round = context.round, .observe = {}});
}

}  // namespace

std::span<const OpSchema> control_schemas() {
  static const std::vector<OpSchema> table = {
      {Op::kLoop,
       2,
       -1,
       {{"body", AttrKind::kGraph},
        {"states", AttrKind::kInt},
        {"scans", AttrKind::kInt},
        {"trip", AttrKind::kInt, false}},
       infer_loop,
       eval_loop},
      {Op::kIf, 1, -1, {{"then", AttrKind::kGraph}, {"else", AttrKind::kGraph}}, infer_if, eval_if}};
  return table;
}

}  // namespace heddle::ir
