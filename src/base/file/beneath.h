#pragma once

#include <string>
#include <string_view>

#include "base/file/descriptor.h"

namespace heddle {

// Opens the file `relative` below `folder` for reading. An empty `folder` means the working directory. Untrusted names
// are safe: no component below `folder` may be a symbolic link or "..", and other processes cannot exchange the file
// between the check and the open. Returns 0 and sets `file`, or returns an errno: ELOOP for a symbolic link, EXDEV for
// a name that leads out of the folder.
int open_beneath(const std::string& folder, std::string_view relative, Descriptor& file);

// Does what open_beneath() does, but opens one component at a time. For kernels without openat2(2).
int open_beneath_by_components(const std::string& folder, std::string_view relative, Descriptor& file);

}  // namespace heddle
