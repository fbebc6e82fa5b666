#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace heddle::driver {

// Returns the text for which the star of `pattern` stands in `name`, the name itself if the pattern has no star, and
// nullopt if the name does not match.
std::optional<std::string> star_of(std::string_view pattern, std::string_view name);
// True if both patterns have one star, or neither has any.
bool have_one_star_each(std::string_view a, std::string_view b);
// Replaces the star of a pattern.
std::string with_star(std::string pattern, std::string_view text);

}  // namespace heddle::driver
