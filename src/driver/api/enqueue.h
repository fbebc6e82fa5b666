#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "heddle/model.h"
#include "runtime/plan.h"

namespace heddle {

// What Executor::enqueue() takes for tensors of the caller and a workspace of `bytes`. Throws kInvalidInput where one
// is not what the plan takes: its type, its shape, where it lies.
std::vector<uint64_t> addresses_of(const runtime::Plan& plan, const std::vector<DeviceTensor>& inputs,
                                   const std::vector<DeviceTensor>& outputs, const void* workspace, size_t bytes);

}  // namespace heddle
