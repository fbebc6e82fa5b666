#pragma once

#include <string>
#include <vector>

#include "heddle/model.h"

namespace heddle::driver {

// What load() took for the extents of these inputs that neither the model nor the options fix, in one line:
// "batch = 1, width = 320 (guessed; --shape x=1,3,48,320 sets them)". "" where there are none, for textual IR and for
// plan files.
std::string guess_of(const std::string& path, const CompileOptions& options, const std::vector<PortInfo>& inputs);

}  // namespace heddle::driver
