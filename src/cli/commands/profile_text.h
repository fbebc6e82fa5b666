#pragma once

#include "profile/profile.h"

namespace heddle::cli {

// Prints a profile for a terminal of 100 columns: the header, the hot path, the most expensive calls, frames and
// kernels, the distance of these kernels from the device's limits, and advice. `top` is the maximum number of rows per
// table.
void print_profile(const profile::Profile& profile, int top);

// Prints the largest changes between two profiles, by frame.
void print_difference(const profile::Difference& difference, int top);

}  // namespace heddle::cli
