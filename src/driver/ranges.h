#pragma once

#include <string>
#include <vector>

#include "heddle/model.h"

namespace heddle::driver {

// `options` with shapes in which the extents of `options.ranges` are largest, for the inputs whose shape is not given.
// Throws kInvalidArgument for a range that is empty or of an extent that the model does not have.
CompileOptions with_largest_extents(const std::string& path, CompileOptions options);

// Shapes from all over the ranges, for kernels to be compiled ahead: few enough that their schedules take seconds at
// most. Those of `options` have all inputs that ranges concern.
std::vector<CompileOptions> samples_of_ranges(const std::string& path, const CompileOptions& options);

}  // namespace heddle::driver
