#pragma once

#include <cstdint>
#include <string>

namespace heddle {

// How many files more the file system of `path` holds; UINT64_MAX when that is unknown or not limited.
uint64_t free_files(const std::string& path);

}  // namespace heddle
