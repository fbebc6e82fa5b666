#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace heddle::driver {

// Returns the text for which the star of `pattern` stands in `name`, the name itself if the pattern has no star, and
// nullopt if the name does not match.
std::optional<std::string> star_of(std::string_view pattern, std::string_view name);
// Replaces the star of a pattern.
std::string with_star(std::string pattern, std::string_view text);

}  // namespace heddle::driver
