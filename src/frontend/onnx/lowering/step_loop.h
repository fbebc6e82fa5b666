#pragma once

#include <memory>
#include <span>
#include <vector>

#include "frontend/onnx/node_context.h"

namespace heddle::onnx {

// Builds a `loop` over the steps of a sequence, for recurrent operators. Values from outside the loop enter the body as
// parameters.
class StepLoop {
 public:
  explicit StepLoop(NodeContext& ctx);

  ir::Builder& body() { return body_; }
  ir::ValueId iteration() const { return iteration_; }

  // Adds a loop state and returns its parameter in the body. Add all states before any outer value.
  ir::ValueId state(ir::ValueId initial);
  // Returns the value in the loop body that stands for the loop-invariant value `value` from outside.
  ir::ValueId outer(const char* name, ir::ValueId value);
  // The slice of `sequence` at the current step. Time is the leading dimension of `sequence`.
  ir::ValueId entry(const char* name, ir::ValueId sequence);

  // Emits the loop. Returns the final states, then the `slices` of all steps, stacked along a new leading dimension.
  std::vector<ir::ValueId> run(int64_t steps, std::span<const ir::ValueId> next_states,
                               std::span<const ir::ValueId> slices);

 private:
  NodeContext& ctx_;
  std::shared_ptr<ir::Graph> graph_;
  ir::Builder body_;
  std::vector<ir::ValueId> operands_;
  ir::ValueId iteration_ = 0, condition_ = 0;
};

}  // namespace heddle::onnx
