#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "heddle/model.h"
#include "runtime/plan.h"

namespace heddle {

// Returns the addresses that Executor::enqueue() takes: those of the caller's tensors and of a workspace of `bytes`
// bytes. Throws kInvalidInput if the type, shape or address of a tensor does not fit the plan. Also throws
// kInvalidInput if written memory (an output or the workspace) overlaps any other memory, except for an output and the
// input that is its alias.
std::vector<uint64_t> addresses_of(const runtime::Plan& plan, const std::vector<DeviceTensor>& inputs,
                                   const std::vector<DeviceTensor>& outputs, const void* workspace, size_t bytes);

// Checks the caller's outputs in host memory and allocates those that are undefined. Throws kInvalidInput if an output
// does not fit the plan, or overlaps another output or an input that is not its alias (PortInfo::alias). Throws
// kUnsupportedType if the plan has text.
void check_outputs(const runtime::Plan& plan, const std::vector<Tensor>& inputs, std::vector<Tensor>& outputs);

}  // namespace heddle
