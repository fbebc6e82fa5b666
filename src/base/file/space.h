#pragma once

#include <cstdint>
#include <string>

namespace heddle {

// The number of files that can still be created on the file system of `path`; UINT64_MAX if unknown or unlimited.
uint64_t free_files(const std::string& path);

}  // namespace heddle
