#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "heddle/model.h"
#include "runtime/plan.h"

namespace heddle {

// What Executor::enqueue() takes for tensors of the caller and a workspace of `bytes`. Throws kInvalidInput where one
// is not what the plan takes: its type, its shape, where it lies; or if memory that is written (an output, the
// workspace) overlaps anything but an input that is its alias.
std::vector<uint64_t> addresses_of(const runtime::Plan& plan, const std::vector<DeviceTensor>& inputs,
                                   const std::vector<DeviceTensor>& outputs, const void* workspace, size_t bytes);

// Throws kInvalidInput where outputs of the caller, in the host's memory, are not what the plan takes, or overlap one
// another or an input that is not theirs (PortInfo::alias); kUnsupportedType where the plan has text. Undefined ones
// get memory.
void check_outputs(const runtime::Plan& plan, const std::vector<Tensor>& inputs, std::vector<Tensor>& outputs);

}  // namespace heddle
