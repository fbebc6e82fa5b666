#include "driver/report/collapse.h"

#include <algorithm>
#include <map>
#include <queue>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace heddle::driver {
namespace {

constexpr size_t kLongestPeriod = 400;

// Items [begin, end) of which each equals the one a period later, as far as that is in there: at least two periods.
struct Run {
  size_t begin, end, period;

  size_t count() const { return (end - begin) / period; }
  size_t saved() const { return period * (count() - 1); }
};

// What saves most comes first, then shorter periods, then what begins earlier.
struct Later {
  bool operator()(const Run& a, const Run& b) const {
    if (a.saved() != b.saved()) return a.saved() < b.saved();
    if (a.period != b.period) return a.period > b.period;
    return a.begin > b.begin;
  }
};

// There are O(n / period) runs of a period.
std::vector<Run> runs_of(const std::vector<size_t>& ids) {
  std::vector<Run> runs;
  for (size_t period = 1; period <= std::min(ids.size() / 2, kLongestPeriod); ++period) {
    size_t begin = 0;
    for (size_t i = period; i <= ids.size(); ++i) {
      if (i < ids.size() && ids[i] == ids[i - period]) continue;
      if (i - begin >= 2 * period) runs.push_back({begin, i, period});
      begin = i + 1 - period;
    }
  }
  return runs;
}

}  // namespace

std::vector<Repeat> find_repeats(const std::vector<std::string>& signatures) {
  std::unordered_map<std::string_view, size_t> known;
  std::vector<size_t> ids;
  for (const std::string& signature : signatures) ids.push_back(known.emplace(signature, known.size()).first->second);
  std::priority_queue<Run, std::vector<Run>, Later> open(Later{}, runs_of(ids));
  std::map<size_t, size_t> gaps = {{0, ids.size()}};  // what no repeat has taken: begin and end
  std::vector<Repeat> repeats;
  while (!open.empty()) {
    const Run run = open.top();
    open.pop();
    // What took a part of the run saves at least as much, so that these are few.
    auto gap = std::prev(gaps.upper_bound(run.begin));
    if (gap->second >= run.end) {
      const size_t end = run.begin + run.period * run.count();
      repeats.push_back({run.begin, run.period, run.count()});
      const size_t gap_end = std::exchange(gap->second, run.begin);
      gaps.emplace(end, gap_end);
      continue;
    }
    for (; gap != gaps.end() && gap->first < run.end; ++gap) {
      const Run rest{std::max(gap->first, run.begin), std::min(gap->second, run.end), run.period};
      if (rest.end >= rest.begin + 2 * run.period) open.push(rest);
    }
  }
  std::sort(repeats.begin(), repeats.end(), [](const Repeat& a, const Repeat& b) { return a.begin < b.begin; });
  return repeats;
}

}  // namespace heddle::driver
