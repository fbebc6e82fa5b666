#pragma once

#include <string>

namespace heddle {

// Identifies the build of the program or library that contains this code. Returns the build ID that the linker wrote
// into it, in hexadecimal, or else the size and date of its file. Two builds of the same version may make different
// plans.
const std::string& build_id();

}  // namespace heddle
