#pragma once

#include <string>
#include <string_view>

namespace heddle::profile {

// One HTML page that shows a profile and loads nothing else. `json` is a profile or a difference in its JSON form, in
// UTF-8; a browser shows `title` until the page has read it.
std::string page(std::string_view json, std::string_view title);

}  // namespace heddle::profile
