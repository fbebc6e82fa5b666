#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace heddle::ir {

// A column as a linear function of the row, clamped to [low, high]. The borders of causal masks, windows and prefixes
// have this form.
struct RowBound {
  int64_t step = 0, offset = 0, low = 0, high = 0;

  int64_t at(int64_t row) const {
    const int64_t column = step * row + offset;
    return column < low ? low : column > high ? high : column;
  }
  bool is_constant() const { return low == high; }
  bool operator==(const RowBound&) const = default;
};

// Fits a bound that has these values in rows 0, 1, ... Returns nullopt if the values are not on a clamped line.
std::optional<RowBound> fit_row_bound(std::span<const int64_t> values);

// A range [first, last) of columns in a row that is treated differently from the row's other columns. Empty if first >=
// last.
struct RowSpan {
  int64_t first, last;
};
struct SpanBounds {
  RowBound first, last;
  bool operator==(const SpanBounds&) const = default;
};
// Fits bounds to these spans, which belong to rows 0, 1, ... Returns nullopt if the spans' ends are not on clamped
// lines. For a row with an empty span, the bounds satisfy last <= first.
std::optional<SpanBounds> fit_spans(std::span<const RowSpan> spans, int64_t columns);

}  // namespace heddle::ir
