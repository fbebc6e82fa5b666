#pragma once

#include <optional>
#include <string>

#include "schedule/kernel_desc.h"
#include "schedule/region/cuda/launch/bundle.h"

namespace heddle::schedule {

// Makes `second` the last step of `first`, if each block of `second` reads results of the same number of blocks of
// `first`, and the number of the one follows from that of the other. Otherwise sets `*why`. Does not ask whether this
// is faster.
std::optional<CudaBundleDesc::LastStep> last_step_of(const ScheduledKernel& first, const ScheduledKernel& second,
                                                     std::string* why);

}  // namespace heddle::schedule
