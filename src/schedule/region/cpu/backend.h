#pragma once

#include "schedule/region/region.h"

namespace heddle::schedule {

std::unique_ptr<RegionBackend> cpu_region(Region& region);

}  // namespace heddle::schedule
