#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace heddle {

// The edit distance of two words: the number of characters to insert, remove, replace or swap with their neighbour.
// Case is ignored, and `_` counts as `-`. Words longer than 64 characters are compared by their beginnings.
int edit_distance(std::string_view a, std::string_view b);

// The word of `known` that the user most likely meant by `word`; "" if none is near.
std::string_view near_miss(std::string_view word, const std::vector<std::string_view>& known);

// "Did you mean NAME? " before another remedy; "" if no name of `known` is near. `known`: a range of texts.
template <typename Range>
std::string did_you_mean(std::string_view word, const Range& known) {
  const std::vector<std::string_view> names(std::begin(known), std::end(known));
  const std::string_view meant = near_miss(word, names);
  return meant.empty() ? std::string() : "Did you mean " + std::string(meant) + "? ";
}

}  // namespace heddle
