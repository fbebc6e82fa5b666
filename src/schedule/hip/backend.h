#pragma once

#include "schedule/backend.h"

namespace heddle::schedule {

// AMD GPUs: memory-bound kernels, by the schedule of region/cuda. Contractions, attention and recurrences have no
// kernels, so the reference evaluator computes them.
const Backend& hip_backend();

}  // namespace heddle::schedule
