#pragma once

#include "schedule/back_to_back/back_to_back.h"

namespace heddle::schedule {

// Back to back on a CPU.
const BackToBackBackend& cpu_back_to_back();

}  // namespace heddle::schedule
