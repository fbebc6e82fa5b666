#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "heddle/model.h"
#include "runtime/plan.h"

namespace heddle {

// The addresses that Executor::enqueue() takes, for the caller's tensors and a workspace of `bytes` bytes. Throws
// kInvalidInput if the type, shape or address of one does not fit the plan, or if memory that is written (an output,
// the workspace) overlaps anything but an input that is its alias.
std::vector<uint64_t> addresses_of(const runtime::Plan& plan, const std::vector<DeviceTensor>& inputs,
                                   const std::vector<DeviceTensor>& outputs, const void* workspace, size_t bytes);

// Checks the caller's outputs in host memory and allocates undefined ones. Throws kInvalidInput if an output does not
// fit the plan, or overlaps another output or an input that is not its alias (PortInfo::alias); kUnsupportedType if the
// plan has text.
void check_outputs(const runtime::Plan& plan, const std::vector<Tensor>& inputs, std::vector<Tensor>& outputs);

}  // namespace heddle
