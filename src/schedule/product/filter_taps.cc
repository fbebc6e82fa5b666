#include "schedule/product/filter_taps.h"

#include <algorithm>

namespace heddle::schedule {
namespace {

// Whether a tap is zero in all filters of a panel.
bool is_zero(const Tensor& filters, const tile::ConvShape& s, int64_t width, int64_t panel, int64_t tap) {
  const auto bytes = static_cast<int64_t>(size_of(filters.dtype()));
  const char* const data = static_cast<const char*>(filters.data());
  const int64_t group = panel / s.panels(width), of_group = panel % s.panels(width);
  const int64_t first = of_group / s.phases * width, end = std::min(first + width, s.o / s.phases);
  for (int64_t channel = first; channel < end; ++channel) {
    const int64_t column = group * s.o + channel * s.phases + of_group % s.phases;
    for (int64_t c = 0; c < s.c; ++c) {
      const char* const at = data + ((column * s.c + c) * s.taps() + tap) * bytes;
      if (std::any_of(at, at + bytes, [](char byte) { return byte != 0; })) return false;
    }
  }
  return true;
}

}  // namespace

std::vector<tile::ConvTaps> panel_taps(const Tensor& filters, const tile::ConvShape& s, int64_t width) {
  std::vector<tile::ConvTaps> boxes(static_cast<size_t>(s.groups * s.panels(width)));
  for (size_t panel = 0; panel < boxes.size(); ++panel) {
    tile::ConvTaps& box = boxes[panel];
    bool is_empty = true;
    for (int64_t tap = 0; tap < s.taps(); ++tap) {
      if (is_zero(filters, s, width, static_cast<int64_t>(panel), tap)) continue;
      const int64_t at[3] = {tap / s.kernel[2] / s.kernel[1], tap / s.kernel[2] % s.kernel[1], tap % s.kernel[2]};
      for (int d = 0; d < 3; ++d) {
        const auto first = static_cast<int32_t>(at[d]);
        box.first[d] = is_empty ? first : std::min(box.first[d], first);
        box.end[d] = is_empty ? first + 1 : std::max(box.end[d], first + 1);
      }
      is_empty = false;
    }
    if (is_empty) box = {};
  }
  return boxes;
}

int64_t tap_count(const std::vector<tile::ConvTaps>& panels) {
  int64_t count = 0;
  for (const tile::ConvTaps& box : panels) {
    count += int64_t{box.end[0] - box.first[0]} * (box.end[1] - box.first[1]) * (box.end[2] - box.first[2]);
  }
  return count;
}

}  // namespace heddle::schedule
