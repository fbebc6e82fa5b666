#pragma once

#include "schedule/product/contraction_builder.h"

namespace heddle::schedule {

// Convolutions and pooling on a CPU.
ScheduledGroup schedule_conv(ContractionBuilder& builder);
ScheduledGroup schedule_window(ContractionBuilder& builder);

}  // namespace heddle::schedule
