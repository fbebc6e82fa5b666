#pragma once

#include <vector>

#include "codegen/codegen.h"
#include "driver/plan/built_plan.h"
#include "driver/plan/plan_buffers.h"
#include "schedule/kernel_desc.h"

namespace heddle::driver {

// A kernel of a plan whose text is not yet among the kernels to compile.
struct PendingKernel {
  schedule::ScheduledKernel scheduled;
  codegen::KernelSource source;
};

// Adds the texts of a plan's kernels to context.kernels. In a plan of depth 0, first joins consecutive kernels in one
// launch if this is predicted to be faster (schedule/sequence/sequence.h). `kernels` are those of the steps that have a
// kernel report, in order. Must run before buffers get their offsets.
void finish_kernels(const ir::Graph& graph, std::vector<PendingKernel> kernels, int depth, BuildContext& context,
                    PlanBuffers& buffers, BuiltPlan& built);

}  // namespace heddle::driver
