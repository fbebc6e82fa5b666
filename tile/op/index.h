// Index arithmetic in 32 or 64 bits, and division by a divisor that a loop reuses.
#pragma once

#include "tile/arch/vec.h"

namespace heddle::tile {

template <typename A, typename B>
TILE_INLINE auto larger(A a, B b) {
  return a > b ? a : b;
}
template <typename A, typename B>
TILE_INLINE auto smaller(A a, B b) {
  return a < b ? a : b;
}
template <typename I>
TILE_INLINE I floor_div(I a, int64_t b) {
  return a / I(b) - (a % I(b) < 0);
}
template <typename I>
TILE_INLINE I floor_mod(I a, int64_t b) {
  const I r = a % I(b);
  return r < 0 ? r + I(b) : r;
}
template <typename I>
TILE_INLINE I clamp_index(I a, int64_t lo, int64_t hi) {
  return a < lo ? I(lo) : a > hi ? I(hi) : a;
}
// Reflects a into [0, n) without repeating the first and last index.
template <typename I>
TILE_INLINE I reflect_index(I a, int64_t n) {
  const I r = floor_mod(a, 2 * n - 2);
  return r < n ? r : I(2 * n - 2) - r;
}
// Maps an index to [0, n). A negative index counts from the end. An index that is still out of range is clamped, so
// that no memory outside the array is read.
template <typename T>
TILE_INLINE int64_t wrap_index(T index, int64_t n) {
  int64_t a = static_cast<int64_t>(index);
  if constexpr (!is_signed<T>) {
    if (index > static_cast<uint64_t>(n - 1)) a = n - 1;
  } else {
    a += a >> 63 & n;  // branch-free, so that compilers move it out of loops
  }
  return clamp_index(a, 0, n - 1);
}

// Divides several dividends by the same divisor. The reciprocal is computed once. The product of a dividend and the
// reciprocal is corrected with the remainder, so the result is rounded like that of a division. If the remainder is not
// finite (since the dividend or the quotient is infinite or NaN), the product is already correct. If the reciprocal is
// not a normal number, an ordinary division is used.
template <typename T, int W>
struct divisor {
  vec<T, W> b, reciprocal;
  bool plain;

  TILE_INLINE explicit divisor(vec<T, W> by) : b(by), reciprocal(splat<W>(T(1)) / by) {
    constexpr T small = sizeof(T) == 4 ? T(0x1p-100) : T(0x1p-1000);
    const vec<T, W> size = abs(by);
    plain = any(~((size > splat<W>(small)) & (size < splat<W>(T(1) / small))));
  }
  TILE_INLINE vec<T, W> divide(vec<T, W> a) const {
    if (plain) return a / b;
    const vec<T, W> q = a * reciprocal, rest = fma(-q, b, a);
    return select(rest - rest == zero<T, W>(), fma(rest, reciprocal, q), q);
  }
};
// a / b, where b is the same in all lanes and usually for a whole row.
template <typename T, int W>
TILE_INLINE vec<T, W> divide_by(vec<T, W> a, vec<T, W> b) {
  constexpr T small = sizeof(T) == 4 ? T(0x1p-100) : T(0x1p-1000);
  const T size = b[0] < T(0) ? -b[0] : b[0];
  if (!(size > small && size < T(1) / small)) return a / b;
  const vec<T, W> r = splat<W>(T(1) / b[0]), q = a * r, rest = fma(-q, b, a);
  return select(rest - rest == zero<T, W>(), fma(rest, r, q), q);
}

}  // namespace heddle::tile
