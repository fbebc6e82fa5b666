#pragma once

#include <functional>
#include <memory>

#include "driver/report/inside/sample_inside.h"
#include "runtime/executor.h"

namespace heddle::driver {

// The same of a GPU: its fused kernels are compiled once more with tables of lines (NVRTC's -lineinfo), and an executor
// that `make` gives runs the plan for `seconds` while CUPTI samples the program counters of warps. The tables hold
// for the plan's kernels as the machine code is equal; a kernel of other code has no shares. A share is one of warps'
// time: what other warps hide counts, too.
InsideShares sample_inside_gpu(const CompiledModel& model, const Target& target, double seconds, int device,
                               const std::vector<Tensor>& inputs,
                               const std::function<std::unique_ptr<runtime::Executor>()>& make);

}  // namespace heddle::driver
