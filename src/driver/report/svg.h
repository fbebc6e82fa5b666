#pragma once

#include <string>

#include "driver/compile/compile.h"

namespace heddle::driver {

// The groups of a compiled model as a picture: a box per group (coloured by kind, with its kernels), an edge per value
// that passes between groups with its type. Layers that repeat are drawn once, in a frame that says how often. The body
// of a loop is a box that names its number of steps.
std::string draw_svg(const CompiledModel& model);

}  // namespace heddle::driver
