#pragma once

#include <string>
#include <vector>

#include "heddle/model.h"

namespace heddle::driver {

// Returns `options` with a shape for every input whose shape is not given. An extent in `options.ranges` gets its
// largest value; other extents are guessed as in load(). If the model names the extent of a range, the range is stored
// under that name. Throws kInvalidArgument if a range is empty, if the model has no such extent, or if one name has two
// different ranges.
CompileOptions with_largest_extents(const std::string& path, CompileOptions options);

// Sample shapes across the ranges, for compiling kernels ahead of time. The samples are few enough to be scheduled in
// seconds. `options` must come from with_largest_extents().
std::vector<CompileOptions> samples_of_ranges(const std::string& path, const CompileOptions& options);

}  // namespace heddle::driver
