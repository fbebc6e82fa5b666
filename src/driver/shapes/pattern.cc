#include "driver/shapes/pattern.h"

namespace heddle::driver {

std::optional<std::string> star_of(std::string_view pattern, std::string_view name) {
  const size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == name ? std::optional(std::string(name)) : std::nullopt;
  const std::string_view head = pattern.substr(0, star), tail = pattern.substr(star + 1);
  if (name.size() < head.size() + tail.size() || !name.starts_with(head) || !name.ends_with(tail)) return std::nullopt;
  return std::string(name.substr(head.size(), name.size() - head.size() - tail.size()));
}

std::string with_star(std::string pattern, std::string_view text) {
  const size_t star = pattern.find('*');
  return star == std::string::npos ? pattern : pattern.replace(star, 1, text);
}

}  // namespace heddle::driver
