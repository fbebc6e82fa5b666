#include "base/near_miss.h"

#include <array>

namespace heddle {
namespace {

constexpr size_t kLongest = 64;

char folded(char c) {
  if (c >= 'A' && c <= 'Z') return static_cast<char>(c - 'A' + 'a');
  return c == '_' ? '-' : c;
}

}  // namespace

int edit_distance(std::string_view a, std::string_view b) {
  a = a.substr(0, kLongest), b = b.substr(0, kLongest);
  // Rows of the table of distances between beginnings: of `a` up to here, up to the character before, and before that.
  std::array<int, kLongest + 1> here{}, before{}, earlier{};
  for (size_t j = 0; j <= b.size(); ++j) before[j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    here[0] = static_cast<int>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const char x = folded(a[i - 1]), y = folded(b[j - 1]);
      here[j] = std::min({here[j - 1] + 1, before[j] + 1, before[j - 1] + (x == y ? 0 : 1)});
      const bool swapped = i > 1 && j > 1 && x == folded(b[j - 2]) && y == folded(a[i - 2]);
      if (swapped) here[j] = std::min(here[j], earlier[j - 2] + 1);
    }
    earlier = before;
    before = here;
  }
  return before[b.size()];
}

std::string_view near_miss(std::string_view word, const std::vector<std::string_view>& known) {
  std::string_view best;
  int least = 0;
  for (const std::string_view name : known) {
    if (name.empty()) continue;
    const int distance = edit_distance(word, name);
    // A third of the letters may be wrong, none of one or two; a word that goes on where the other ends is near,
    // however much it has.
    const size_t size = std::max(word.size(), name.size());
    const int most = size < 3 ? 0 : static_cast<int>(size + 2) / 3;
    const bool begins = word.size() >= 3 && edit_distance(word, name.substr(0, word.size())) == 0;
    if (!begins && distance > most) continue;
    if (best.empty() || distance < least) best = name, least = distance;
  }
  return best;
}

}  // namespace heddle
