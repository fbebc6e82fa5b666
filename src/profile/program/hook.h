#pragma once

#include <string_view>

namespace heddle::profile {

// The Python files that start a recording in a program, as they are in python/ beside this: `sitecustomize`, which
// Python imports when it starts, and what it records with.
extern const std::string_view kSiteCustomize, kRecord;

}  // namespace heddle::profile
