// The shapes of back-to-back contractions on a CPU, as plain numbers. They are shared by the kernel
// (tile/kernel/cpu/back_to_back.h) and the scheduler.
#pragma once

#include <stdint.h>

namespace heddle::tile {

inline constexpr int kMostLinks = 3;

// Rows [first, last) of an image.
struct RowRange {
  int64_t first, last;

  constexpr int64_t count() const { return last - first; }
};

// A contraction of a chain: the feature map that it computes, and the rows of the previous map that it needs for this.
struct ChainLink {
  int64_t rows = 0;                                       // rows of an image
  int64_t row_bytes = 0;                                  // bytes of a row in scratch
  int64_t kernel = 1, stride = 1, dilation = 1, low = 0;  // of the windows, vertically

  // The rows of the previous map that are needed to compute the rows `made` of this map. The previous map has `before`
  // rows.
  constexpr RowRange needs(RowRange made, int64_t before) const {
    const int64_t first = made.first * stride - low;
    const int64_t last = (made.last - 1) * stride - low + (kernel - 1) * dilation + 1;
    const auto inside = [&](int64_t row) { return row < 0 ? 0 : row > before ? before : row; };
    return {inside(first), inside(last)};
  }
};

// The problem and its blocking. The rows of an image's last map are divided into strips; each strip is a task. A strip
// is divided into steps of about equal size, whose boundaries are at multiples of `unit` rows. Rows of intermediate
// maps stay in scratch as long as a later step of the strip needs them.
struct ChainShape {
  int64_t images = 1, unit = 1, strips = 1, steps = 1;
  int links = 0;
  ChainLink link[kMostLinks];
  int64_t buffer[kMostLinks] =
      {};  // byte offset in scratch of a map's rows; the last entry: of the scratch that the links use

  constexpr int64_t tasks() const { return images * strips; }

  // Calls visit(link, have, need, make) for each step of a task and, within a step, for each link in order. `have`: the
  // rows of the link's map that are available. `need`: the rows that are needed. `make`: the needed rows that the link
  // must compute.
  template <typename Visit>
  constexpr void for_parts(int64_t task, const Visit& visit) const {
    const int64_t rows = link[links - 1].rows, units = (rows + unit - 1) / unit, strip = task % strips;
    const int64_t unit0 = units * strip / strips, of_strip = units * (strip + 1) / strips - unit0;
    RowRange have[kMostLinks] = {};
    for (int64_t step = 0; step < steps; ++step) {
      const int64_t first = (unit0 + of_strip * step / steps) * unit;
      const int64_t last = (unit0 + of_strip * (step + 1) / steps) * unit;
      RowRange need[kMostLinks] = {};
      need[links - 1] = {first, last < rows ? last : rows};
      if (need[links - 1].count() <= 0) continue;
      for (int i = links - 1; i > 0; --i) need[i - 1] = link[i].needs(need[i], link[i - 1].rows);
      for (int i = 0; i < links; ++i) {
        const bool keeps = i < links - 1 && have[i].last > need[i].first;
        const RowRange make = {keeps ? have[i].last : need[i].first, need[i].last};
        visit(i, keeps ? have[i] : RowRange{need[i].first, need[i].first}, need[i], make);
        have[i] = need[i];
      }
    }
  }
};

}  // namespace heddle::tile
