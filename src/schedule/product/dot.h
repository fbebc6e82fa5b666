#pragma once

#include "schedule/product/contraction_builder.h"

namespace heddle::schedule {

// A product on a CPU.
ScheduledGroup schedule_dot(ContractionBuilder& builder);

}  // namespace heddle::schedule
