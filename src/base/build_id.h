#pragma once

#include <string>

namespace heddle {

// Identifies the build of the program or library that contains this code. Returns the build ID that the linker wrote
// into it, in hexadecimal. If there is no build ID, returns the size and modification time of the file. The result is
// part of the plan cache's keys, since two builds of the same version may produce different plans.
const std::string& build_id();

}  // namespace heddle
