#include "driver/collapse.h"

#include <algorithm>
#include <map>

namespace heddle::driver {
namespace {

constexpr size_t kLongestPeriod = 400;

// The repeat inside [begin, end) that saves most items; count 0 where there is none.
Repeat best_repeat(const std::vector<size_t>& ids, size_t begin, size_t end) {
  Repeat best;
  size_t saved = 0;
  const size_t length = end - begin;
  for (size_t period = 1; period <= std::min(length / 2, kLongestPeriod); ++period) {
    size_t run = 0;  // items in a row that equal the one a period before
    for (size_t i = begin + period; i < end; ++i) {
      run = ids[i] == ids[i - period] ? run + 1 : 0;
      const size_t count = run / period + 1;
      if (count >= 2 && run % period == 0 && period * (count - 1) > saved) {
        saved = period * (count - 1);
        best = {i + 1 - period * count, period, count};
      }
    }
  }
  return best;
}

void find_in(const std::vector<size_t>& ids, size_t begin, size_t end, std::vector<Repeat>& repeats) {
  if (end - begin < 2) return;
  const Repeat best = best_repeat(ids, begin, end);
  if (best.count == 0) return;
  find_in(ids, begin, best.begin, repeats);
  repeats.push_back(best);
  find_in(ids, best.begin + best.period * best.count, end, repeats);
}

}  // namespace

std::vector<Repeat> find_repeats(const std::vector<std::string>& signatures) {
  std::map<std::string, size_t> known;
  std::vector<size_t> ids;
  for (const std::string& signature : signatures) ids.push_back(known.emplace(signature, known.size()).first->second);
  std::vector<Repeat> repeats;
  find_in(ids, 0, ids.size(), repeats);
  return repeats;
}

}  // namespace heddle::driver
