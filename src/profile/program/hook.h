#pragma once

#include <string_view>

namespace heddle::profile {

// The Python files that start a recording in a program, from python/ in this folder: `sitecustomize`, which Python
// imports when it starts, and the module that records.
extern const std::string_view kSiteCustomize, kRecord;

}  // namespace heddle::profile
