#pragma once

#include <vector>

#include "codegen/codegen.h"
#include "schedule/kernel_desc.h"

namespace heddle::driver {

// The kernels of a group and their source texts.
struct CompiledGroup {
  schedule::ScheduledGroup scheduled;
  std::vector<codegen::KernelSource> sources;
};

}  // namespace heddle::driver
