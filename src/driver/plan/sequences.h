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

// Joins consecutive kernels of a plan in one launch if this is predicted to be faster (schedule/sequence/sequence.h),
// and adds the texts of all kernels to context.kernels. `kernels` are those of the steps that have a kernel report, in
// order. Must run before buffers get their offsets.
void join_sequences(const ir::Graph& graph, std::vector<PendingKernel> kernels, BuildContext& context,
                    PlanBuffers& buffers, BuiltPlan& built);

}  // namespace heddle::driver
