// Finds how many neighbouring indices are also neighbours in memory: the vector width that a view can guarantee to a
// load.
//
// A group is `width` consecutive indices along one dimension of the view. The first index of a group is a multiple of
// `width`; the indices of the other dimensions are arbitrary. The analysis passes the index of each lane through the
// transforms of the view. At each level it knows only the properties that all groups share: lane l has the index base +
// l * step, and `base` is a multiple of `align`. A rule may lose information but never guesses, so the resulting width
// is a lower bound that holds for every group.
#pragma once

#include "tile/core/number.h"

namespace heddle::tile {

struct Merged;

struct Lanes {
  bool affine = true;
  int64_t align = 1;               // 0 if base is 0
  int64_t step = 0;                // 0 if all lanes have the same index
  const Merged* origin = nullptr;  // not null if the index is digit `place` of this merged index
  int place = 0;
};

// A merged index, which is split into digits, and the lengths of the digits. If the digits are packed in memory, they
// are combined to one number again.
struct Merged {
  static constexpr int kMaxDigits = 8;
  Lanes whole;
  Fact lengths[kMaxDigits];
  int digits = 0;
};

namespace detail {

TILE_HD constexpr Lanes scattered() {
  return {.affine = false};
}

TILE_HD constexpr bool fits_int(int64_t n) {
  return n == static_cast<int>(n);
}

// Replaces a divisor that exceeds the limit by its largest power-of-two factor up to 2^20, so that products do not
// overflow.
TILE_HD constexpr int64_t bounded(int64_t align) {
  constexpr int64_t kLimit = int64_t(1) << 31;
  if (align < 0) align = -align;
  return align < kLimit ? align : gcd(align, int64_t(1) << 20);
}

TILE_HD constexpr Lanes scale(const Lanes& v, const Fact& by) {
  if (by.known && by.value == 0) return {.align = 0};
  if (!v.affine) return scattered();
  const Lanes scaled = {.align = bounded(v.align * bounded(by.divisor))};
  if (v.step == 0) return scaled;
  if (!by.known || !fits_int(by.value) || !fits_int(v.step)) return scattered();
  return {.align = scaled.align, .step = v.step * by.value};
}

TILE_HD constexpr Lanes add(const Lanes& a, const Lanes& b) {
  if (!a.affine || !b.affine) return scattered();
  return {.align = gcd(a.align, b.align), .step = a.step + b.step};
}

TILE_HD constexpr Lanes shift(const Lanes& v, const Fact& by) {
  return add(v, {.align = by.known ? bounded(by.value) : bounded(by.divisor)});
}

// True if no group crosses a multiple of n.
TILE_HD constexpr bool stays_below_multiple(const Lanes& v, const Fact& n, int width) {
  if (v.step == 0) return true;
  const int64_t room = gcd(v.align, n.divisor);
  return v.step > 0 && (room == 0 || v.step * (width - 1) < room);
}

TILE_HD constexpr bool divides(const Fact& n, int64_t value) {
  return n.known && n.value > 0 && value % n.value == 0;
}

// floor(v / n)
TILE_HD constexpr Lanes divide(const Lanes& v, const Fact& n, int width) {
  if (!v.affine) return scattered();
  const int64_t align = v.align == 0 ? 0 : divides(n, v.align) ? v.align / n.value : 1;
  if (v.step != 0 && divides(n, v.step)) return {.align = align, .step = v.step / n.value};
  if (!stays_below_multiple(v, n, width)) return scattered();
  return {.align = align};
}

// v mod n
TILE_HD constexpr Lanes remainder(const Lanes& v, const Fact& n, int width) {
  if (!v.affine) return scattered();
  const int64_t align = v.align == 0 || divides(n, v.align) ? 0 : gcd(v.align, n.divisor);
  if (divides(n, v.step)) return {.align = align};
  if (!stays_below_multiple(v, n, width)) return scattered();
  return {.align = align, .step = v.step};
}

TILE_HD constexpr Fact product(const Fact& a, const Fact& b) {
  if (a.known && b.known && fits_int(a.value) && fits_int(b.value)) {
    return {true, a.value * b.value, a.value * b.value};
  }
  return {false, 0, bounded(bounded(a.divisor) * bounded(b.divisor))};
}

// The index that is formed by digits `first` to `last` of a merged index.
TILE_HD constexpr Lanes digits(const Merged& m, int first, int last, int width) {
  constexpr Fact kOne = {true, 1, 1};
  Fact behind = kOne, inside = kOne;
  for (int i = last + 1; i < m.digits; ++i) behind = product(behind, m.lengths[i]);
  for (int i = first; i <= last; ++i) inside = product(inside, m.lengths[i]);
  const Lanes shifted = divide(m.whole, behind, width);
  return first == 0 ? shifted : remainder(shifted, inside, width);
}

// True if b is the digit after a of the same merged index and the strides show that the two digits are packed in
// memory.
TILE_HD constexpr bool packed_after(const Lanes& a, const Fact& stride_a, const Lanes& b, const Fact& stride_b) {
  if (a.origin == nullptr || a.origin != b.origin || b.place != a.place + 1) return false;
  const Fact& length = a.origin->lengths[b.place];
  if (!stride_a.known || !stride_b.known || !length.known || length.value <= 0) return false;
  return stride_a.value % length.value == 0 && stride_a.value / length.value == stride_b.value;
}

// The sum of up[i] * stride[i]. Digits of the same merged index that are packed in memory are combined first.
template <int N>
TILE_HD constexpr Lanes linear(const Lanes* up, const Fact (&stride)[N], int count, int width) {
  Lanes sum = {.align = 0};
  int terms = 0, only = 0;
  for (int i = 0; i < count; ++i) {
    bool inside_run = false;
    for (int j = 0; j < count; ++j) inside_run = inside_run || packed_after(up[j], stride[j], up[i], stride[i]);
    if (inside_run) continue;
    int last = i;
    for (int j = 0; j < count; ++j) {
      if (packed_after(up[last], stride[last], up[j], stride[j])) {
        last = j;
        j = -1;
      }
    }
    const Lanes term = last == i ? up[i] : digits(*up[i].origin, up[i].place, up[last].place, width);
    if (term.affine && term.align == 0 && term.step == 0) continue;
    sum = add(sum, scale(term, stride[last]));
    ++terms;
    only = i == last ? i : -1;
  }
  // If the sum is a single digit with stride 1, the result is still that digit.
  if (terms == 1 && only >= 0 && stride[only].known && stride[only].value == 1) return up[only];
  return sum;
}

// True if, in every group, 0 <= v < length holds for all lanes or for none. `below` and `above` say which of the two
// bounds can fail at all.
TILE_HD constexpr bool bounds_uniform(const Lanes& v, const Fact& length, int width, bool below, bool above) {
  if (!below && !above) return true;
  if (!v.affine) return false;
  if (v.step == 0) return true;
  const int64_t reach = v.step * (width - 1);
  if (v.step < 0) return false;
  if (below && v.align != 0 && reach >= v.align) return false;
  if (!above) return true;
  if (v.align == 0) return length.known && reach < length.value;
  if (!length.known) return reach < gcd(v.align, length.divisor);
  const int64_t rest = length.value % v.align;
  return reach < (rest == 0 ? v.align : rest);
}

}  // namespace detail
}  // namespace heddle::tile
