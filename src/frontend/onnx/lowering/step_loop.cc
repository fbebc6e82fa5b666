#include "frontend/onnx/lowering/step_loop.h"

namespace heddle::onnx {

using ir::Op;
using ir::ValueId;

StepLoop::StepLoop(NodeContext& ctx) : ctx_(ctx), graph_(std::make_shared<ir::Graph>()), body_(*graph_) {
  std::vector<ir::OriginId> origins;
  for (ir::OriginId id : ctx.b.origins()) origins.push_back(graph_->origin(ctx.b.graph().origin(id)));
  body_.set_origins(std::move(origins));
  iteration_ = graph_->parameter("iteration", {DType::kI64, {}});
  condition_ = graph_->parameter("condition", {DType::kBool, {}});
}

ValueId StepLoop::state(ValueId initial) {
  const ValueId inside = graph_->parameter(fmt::format("state{}", operands_.size()), ctx_.b.type(initial));
  operands_.push_back(initial);
  return inside;
}

ValueId StepLoop::outer(const char* name, ValueId value) {
  const ValueId inside = graph_->parameter(name, ctx_.b.type(value));
  operands_.push_back(value);
  return inside;
}

ValueId StepLoop::entry(const char* name, ValueId sequence) {
  return body_.gather(outer(name, sequence), iteration_, 0);
}

std::vector<ValueId> StepLoop::run(int64_t steps, std::span<const ValueId> next_states,
                                   std::span<const ValueId> slices) {
  graph_->output("condition_out", condition_);
  for (size_t i = 0; i < next_states.size(); ++i) graph_->output(fmt::format("state{}_out", i), next_states[i]);
  for (size_t i = 0; i < slices.size(); ++i) graph_->output(fmt::format("slice{}", i), slices[i]);
  std::vector<ValueId> operands = {ctx_.b.constant(Tensor::of<int64_t>(DType::kI64, {}, {steps})),
                                   ctx_.b.scalar(DType::kBool, 1)};
  operands.insert(operands.end(), operands_.begin(), operands_.end());
  ir::Attrs attrs{{"body", std::shared_ptr<const ir::Graph>(graph_)},
                  {"states", static_cast<int64_t>(next_states.size())},
                  {"scans", static_cast<int64_t>(slices.size())},
                  {"trip", steps}};
  return ctx_.b.emit_all(Op::kLoop, std::move(operands), std::move(attrs));
}

}  // namespace heddle::onnx
