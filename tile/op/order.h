// Maps elements to unsigned integers with the same order, for sorting and selection.
#pragma once

#include "tile/arch/vec.h"

namespace heddle::tile {

// The result has 32 bits, or 64 for wider elements. NaN is above every number. Both zeros map to the same integer.
template <typename T>
TILE_INLINE auto order_key(const T* p) {
  using C = compute_t<T>;
  using U = uint_t<sizeof(C) < 4 ? 4 : int(sizeof(C))>;
  const C x = load<1>(p).v;
  if constexpr (is_float<C>) {
    if (x != x) return U(~U(0));
    const U bits = __builtin_bit_cast(U, x + C(0)), sign = U(1) << (8 * sizeof(U) - 1);
    return U(bits & sign ? ~bits : bits | sign);
  } else if constexpr (is_signed<C>) {
    return U(U(x) ^ (U(1) << (8 * sizeof(U) - 1)));
  } else {
    return U(x);
  }
}

}  // namespace heddle::tile
