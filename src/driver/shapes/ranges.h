#pragma once

#include <string>
#include <vector>

#include "heddle/model.h"

namespace heddle::driver {

// `options` with shapes in which the extents of `options.ranges` are largest, for the inputs whose shape is not given;
// other extents are guessed as load() guesses them. Ranges of extents that have a name in the model are under that
// name. Throws kInvalidArgument for a range that is empty or of an extent that the model does not have, or two for one
// name.
CompileOptions with_largest_extents(const std::string& path, CompileOptions options);

// Shapes from all over the ranges, for kernels to be compiled ahead: few enough that their schedules take seconds at
// most. `options` come from with_largest_extents().
std::vector<CompileOptions> samples_of_ranges(const std::string& path, const CompileOptions& options);

}  // namespace heddle::driver
