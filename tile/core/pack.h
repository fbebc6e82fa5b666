// Panels of a weight matrix as the micro-kernel streams them. Used ahead of time by the compiler and inside kernels, so
// it knows no instruction set.
#pragma once

#include <stdint.h>

namespace heddle::tile {

// The matrix B[K][N] of each group, wherever its elements lie: K = outer * inner with a stride for each (a filter's
// taps and channels). Strides in elements.
struct PanelSource {
  int64_t groups = 1, group_stride = 0;
  int64_t outer = 1, outer_stride = 0;
  int64_t inner = 0, inner_stride = 0;
  int64_t n = 0, n_stride = 0;
};

constexpr int64_t panel_count(int64_t n, int64_t width) {
  return (n + width - 1) / width;
}

// Elements of the packed form.
constexpr int64_t packed_elements(const PanelSource& s, int64_t width) {
  return s.groups * panel_count(s.n, width) * width * s.outer * s.inner;
}

// Writes panel `panel` of `group` as [K][width]; columns behind the last one are zero.
template <typename Dst, typename Src, typename Convert>
inline void pack_panel(Dst* dst, const Src* src, const PanelSource& s, int64_t width, int64_t group, int64_t panel,
                       Convert convert) {
  const int64_t first = panel * width;
  const int64_t columns = s.n - first < width ? s.n - first : width;
  for (int64_t o = 0; o < s.outer; ++o) {
    for (int64_t i = 0; i < s.inner; ++i) {
      const Src* row = src + group * s.group_stride + o * s.outer_stride + i * s.inner_stride + first * s.n_stride;
      for (int64_t j = 0; j < columns; ++j) dst[j] = convert(row[j * s.n_stride]);
      for (int64_t j = columns; j < width; ++j) dst[j] = Dst{};
      dst += width;
    }
  }
}

// The whole operand: [group][panel][K][width].
template <typename Dst, typename Src, typename Convert>
inline void pack_panels(Dst* dst, const Src* src, const PanelSource& s, int64_t width, Convert convert) {
  const int64_t panels = panel_count(s.n, width);
  for (int64_t g = 0; g < s.groups; ++g) {
    for (int64_t p = 0; p < panels; ++p) {
      pack_panel(dst, src, s, width, g, p, convert);
      dst += s.outer * s.inner * width;
    }
  }
}

}  // namespace heddle::tile
