#pragma once

#include <string>

#include "driver/compile/compile.h"
#include "driver/report/modules.h"

namespace heddle::driver {

// Draws the groups of a compiled model as one SVG image. Each group is a box, coloured by kind. The box shows the
// group's kernels, the types of its results and its share of the time. Each value that one group passes to another is
// an edge. Repeated layers are drawn once, in a frame with the number of repetitions. For a model with many groups,
// modules are drawn instead, as far as the names of nodes reveal them. The body of a loop is part of the loop's box.
std::string draw_svg(const CompiledModel& model, Modules modules = Modules::kFolded);

}  // namespace heddle::driver
