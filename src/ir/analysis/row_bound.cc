#include "ir/analysis/row_bound.h"

#include <algorithm>
#include <functional>

namespace heddle::ir {

std::optional<RowBound> fit_row_bound(std::span<const int64_t> values) {
  if (values.empty()) return std::nullopt;
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  if (*low == *high) return RowBound{0, 0, *low, *high};
  const auto fits = [&](const RowBound& bound) {
    int64_t row = 0;
    return std::all_of(values.begin(), values.end(), [&](int64_t value) { return bound.at(row++) == value; });
  };
  // Where values begin to differ, the first difference may be cut short by the limit before it, the second one by the
  // limit after it.
  const auto differs = std::adjacent_find(values.begin(), values.end(), std::not_equal_to<>());
  for (auto at = differs; at != values.end() && at + 1 != values.end() && at - differs < 2; ++at) {
    const int64_t step = at[1] - at[0];
    for (const int64_t through : {0, 1}) {
      const RowBound bound{step, at[through] - step * (at - values.begin() + through), *low, *high};
      if (step != 0 && fits(bound)) return bound;
    }
  }
  return std::nullopt;
}

std::optional<SpanBounds> fit_spans(std::span<const RowSpan> spans, int64_t columns) {
  // Rows without a span lie before the line through the others, or beyond it.
  for (const int64_t nowhere : {int64_t{0}, columns}) {
    std::vector<int64_t> first, last;
    for (const RowSpan& span : spans) {
      const bool is_empty = span.first >= span.last;
      first.push_back(is_empty ? nowhere : span.first), last.push_back(is_empty ? nowhere : span.last);
    }
    const auto first_bound = fit_row_bound(first), last_bound = fit_row_bound(last);
    if (first_bound && last_bound) return SpanBounds{*first_bound, *last_bound};
  }
  return std::nullopt;
}

}  // namespace heddle::ir
