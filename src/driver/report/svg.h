#pragma once

#include <string>

#include "driver/compile/compile.h"
#include "driver/report/modules.h"

namespace heddle::driver {

// The groups of a compiled model as a picture on one sheet. Each group is a box, coloured by kind, with its kernels,
// the types of its results and its share of the time. Each value that passes between groups is an edge. Repeated layers
// are drawn once, in a frame with their number. For a model with many groups, modules are drawn instead, as far as the
// names of its nodes reveal them. The body of a loop counts as part of the loop's box.
std::string draw_svg(const CompiledModel& model, Modules modules = Modules::kFolded);

}  // namespace heddle::driver
