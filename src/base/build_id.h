#pragma once

#include <string>

namespace heddle {

// Identifies the build of the program or library that this code is part of, in hexadecimal: the hash that the linker
// wrote into it, else size and date of its file. Two builds of one version need not make the same plans.
const std::string& build_id();

}  // namespace heddle
