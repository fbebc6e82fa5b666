#pragma once

#include <functional>
#include <memory>

#include "driver/report/inside/sample_inside.h"
#include "runtime/executor.h"

namespace heddle::driver {

// sample_inside() for a GPU. It compiles the fused kernels again with line tables (NVRTC's -lineinfo). An executor from
// `make` runs the plan for `seconds` while CUPTI samples the program counters of warps. The tables are valid for the
// plan's kernels if the machine code is equal; a kernel whose code differs has no shares. Shares are of the warps'
// time, so time that other warps hide counts, too.
InsideShares sample_inside_gpu(const CompiledModel& model, const Target& target, double seconds, int device,
                               const std::vector<Tensor>& inputs,
                               const std::function<std::unique_ptr<runtime::Executor>()>& make);

}  // namespace heddle::driver
