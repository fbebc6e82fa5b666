#pragma once

#include <string>

#include "driver/compile/compile.h"
#include "driver/report/modules.h"

namespace heddle::driver {

// The groups of a compiled model as a picture on one sheet: a box for each group, coloured by kind, with its kernels,
// the types of its results and its share of the time, and an edge for each value that passes between groups. Layers
// that repeat are drawn once, in a frame that says how often. Of a model of many groups modules are drawn, as far as
// the names of its nodes tell of them. The body of a loop counts into the box of the loop.
std::string draw_svg(const CompiledModel& model, Modules modules = Modules::kFolded);

}  // namespace heddle::driver
