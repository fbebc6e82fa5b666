#pragma once

#include "codegen/codegen.h"
#include "driver/model/report.h"
#include "ir/graph.h"
#include "schedule/kernel_desc.h"

namespace heddle::driver {

// The report entry of a kernel of this graph, without measured times.
KernelReport report_of(const ir::Graph& graph, const schedule::ScheduledKernel& kernel,
                       const codegen::KernelSource& source);

}  // namespace heddle::driver
