#pragma once

#include <string>
#include <string_view>

#include "base/file/descriptor.h"

namespace heddle {

// Opens for reading what `relative` names below `folder` ("" is the working folder), for names of unknown origin. No
// component below `folder` may be a symbolic link, and none may be "..": what was checked is what was opened, whatever
// other processes do meanwhile. Returns 0 and sets `file`, or returns an errno: ELOOP for a link, EXDEV for a name that
// leads out of the folder.
int open_beneath(const std::string& folder, std::string_view relative, Descriptor& file);

// The same one component after the other, for kernels without openat2(2).
int open_beneath_by_components(const std::string& folder, std::string_view relative, Descriptor& file);

}  // namespace heddle
