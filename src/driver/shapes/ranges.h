#pragma once

#include <string>
#include <vector>

#include "heddle/model.h"

namespace heddle::driver {

// Returns `options` with shapes for the inputs whose shape is not given. Extents in `options.ranges` get their largest
// value; others are guessed as load() guesses them. The range of an extent that has a name in the model is moved to
// that name. Throws kInvalidArgument if a range is empty, if the model has no such extent, or if one name gets two
// different ranges.
CompileOptions with_largest_extents(const std::string& path, CompileOptions options);

// Sample shapes from across the ranges, for compiling kernels ahead of time. They are few enough to be scheduled in
// seconds. `options` come from with_largest_extents().
std::vector<CompileOptions> samples_of_ranges(const std::string& path, const CompileOptions& options);

}  // namespace heddle::driver
