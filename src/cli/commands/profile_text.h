#pragma once

#include "profile/profile.h"

namespace heddle::cli {

// Prints a profile for a terminal of 100 columns: its header, the hot path, the calls, frames and kernels that take the
// most time, how far they are from the limits of the device, and what to do. `top`: rows of each table.
void print_profile(const profile::Profile& profile, int top);

// Prints the largest changes between two profiles, by frame.
void print_difference(const profile::Difference& difference, int top);

}  // namespace heddle::cli
