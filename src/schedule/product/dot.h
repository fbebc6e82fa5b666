#pragma once

#include "schedule/product/contraction_builder.h"

namespace heddle::schedule {

// Schedules a matrix product for a CPU.
ScheduledGroup schedule_dot(ContractionBuilder& builder);

}  // namespace heddle::schedule
