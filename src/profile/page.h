#pragma once

#include <string>
#include <string_view>

namespace heddle::profile {

// Returns a self-contained HTML page that shows a profile. `json` is a profile, or a difference of profiles, in its
// JSON form and in UTF-8. The browser shows `title` until the page has parsed the profile.
std::string page(std::string_view json, std::string_view title);

}  // namespace heddle::profile
