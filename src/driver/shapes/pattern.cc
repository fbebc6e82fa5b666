#include "driver/shapes/pattern.h"

#include <algorithm>

namespace heddle::driver {

std::optional<std::string> star_of(std::string_view pattern, std::string_view name) {
  const size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == name ? std::optional(std::string(name)) : std::nullopt;
  const std::string_view head = pattern.substr(0, star), tail = pattern.substr(star + 1);
  if (name.size() < head.size() + tail.size() || !name.starts_with(head) || !name.ends_with(tail)) return std::nullopt;
  return std::string(name.substr(head.size(), name.size() - head.size() - tail.size()));
}

bool have_one_star_each(std::string_view a, std::string_view b) {
  const auto stars = std::count(a.begin(), a.end(), '*');
  return stars == std::count(b.begin(), b.end(), '*') && stars <= 1;
}

std::string with_star(std::string pattern, std::string_view text) {
  const size_t star = pattern.find('*');
  return star == std::string::npos ? pattern : pattern.replace(star, 1, text);
}

}  // namespace heddle::driver
