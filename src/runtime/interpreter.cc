#include "runtime/interpreter.h"

#include "runtime/plan.h"

namespace heddle::runtime {

std::shared_ptr<const void> prepare(const Interpreter& interpreter, const Plan& plan, const ReferenceStep& step) {
  const auto types_of = [&](const std::vector<uint32_t>& buffers) {
    std::vector<ValueType> types;
    for (const uint32_t index : buffers) types.push_back({plan.buffers[index].dtype, plan.buffers[index].shape});
    return types;
  };
  return interpreter.prepare(step.ir, types_of(step.parameters), types_of(step.results));
}

}  // namespace heddle::runtime
