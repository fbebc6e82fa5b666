#pragma once

#include <cstdint>
#include <string>

namespace heddle {

// How many more files the file system of `path` can hold; UINT64_MAX if that is unknown or unlimited.
uint64_t free_files(const std::string& path);

}  // namespace heddle
