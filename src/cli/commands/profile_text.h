#pragma once

#include "profile/profile.h"

namespace heddle::cli {

// A profile for a terminal of 100 columns: its header, the hot path, the calls, frames and kernels that take most, how
// far they are from what the device allows, and what to do. `top`: rows of each table.
void print_profile(const profile::Profile& profile, int top);

// What changed most between two profiles, by frame.
void print_difference(const profile::Difference& difference, int top);

}  // namespace heddle::cli
