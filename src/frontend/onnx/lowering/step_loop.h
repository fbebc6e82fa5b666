#pragma once

#include <memory>
#include <span>
#include <vector>

#include "frontend/onnx/node_context.h"

namespace heddle::onnx {

// Builds a `loop` over the steps of a sequence, for recurrent operators. Outer values enter the body as parameters, or
// as constants if they are known, so that the compiler can prepack weights.
class StepLoop {
 public:
  explicit StepLoop(NodeContext& ctx);

  ir::Builder& body() { return body_; }
  ir::ValueId iteration() const { return iteration_; }

  // The parameter of the body for a state with this initial value. Add all states before any outer value.
  ir::ValueId state(ir::ValueId initial);
  // The value in the body of a loop-invariant outer value.
  ir::ValueId outer(const char* name, ir::ValueId value);
  // The entry of `sequence` at this step; time is its leading dimension.
  ir::ValueId entry(const char* name, ir::ValueId sequence);

  // Emits the loop. Returns the final states, then each slice of the body, stacked along a new leading dimension.
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
