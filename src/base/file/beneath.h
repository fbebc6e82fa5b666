#pragma once

#include <string>
#include <string_view>

#include "base/file/descriptor.h"

namespace heddle {

// Opens the file `relative` below `folder` ("" is the working folder) for reading. It is safe for untrusted names. No
// component below `folder` may be a symbolic link or "..". The file that was checked is the file that is opened,
// whatever other processes do meanwhile. Returns 0 and sets `file`, or returns an errno: ELOOP for a link, EXDEV for a
// name that leads out of the folder.
int open_beneath(const std::string& folder, std::string_view relative, Descriptor& file);

// The same, one component at a time, for kernels without openat2(2).
int open_beneath_by_components(const std::string& folder, std::string_view relative, Descriptor& file);

}  // namespace heddle
