#pragma once

#include <functional>
#include <memory>

#include "driver/report/inside/sample_inside.h"
#include "runtime/executor.h"

namespace heddle::driver {

// Implements sample_inside() for a GPU. Recompiles the fused kernels with line tables (NVRTC's -lineinfo). An executor
// that `make` returns then runs the plan for `seconds`, while CUPTI samples the program counters of warps. A kernel of
// the plan gets shares only if the recompiled kernel has the same machine code, because a line table is valid only for
// that code. A share is a fraction of the warps' time, including time that is hidden by other warps.
InsideShares sample_inside_gpu(const CompiledModel& model, const Target& target, double seconds, int device,
                               const std::vector<Tensor>& inputs,
                               const std::function<std::unique_ptr<runtime::Executor>()>& make);

}  // namespace heddle::driver
