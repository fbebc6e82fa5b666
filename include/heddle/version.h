#pragma once

#include "heddle/export.h"

namespace heddle {

// "0.1.0"
HEDDLE_API const char* version();

}  // namespace heddle
