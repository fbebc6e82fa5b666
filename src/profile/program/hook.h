#pragma once

#include <string_view>

namespace heddle::profile {

// The Python files that start a recording inside a program: `sitecustomize`, which Python imports at start-up, and the
// module that records. Their sources are in python/ in this folder.
extern const std::string_view kSiteCustomize, kRecord;

}  // namespace heddle::profile
