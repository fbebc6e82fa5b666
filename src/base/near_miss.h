#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace heddle {

// The edit distance of two words: the number of single-character insertions, deletions, replacements and swaps of
// neighbours. Case is ignored, and `_` counts as `-`. Only the first 64 characters of a word are compared.
int edit_distance(std::string_view a, std::string_view b);

// The word of `known` that the user most likely meant by `word`; "" if no word is close.
std::string_view near_miss(std::string_view word, const std::vector<std::string_view>& known);

// Returns "Did you mean NAME? ", to print before another remedy; "" if no name in `known` is close. `known` is a range
// of strings.
template <typename Range>
std::string did_you_mean(std::string_view word, const Range& known) {
  const std::vector<std::string_view> names(std::begin(known), std::end(known));
  const std::string_view meant = near_miss(word, names);
  return meant.empty() ? std::string() : "Did you mean " + std::string(meant) + "? ";
}

}  // namespace heddle
