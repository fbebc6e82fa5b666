// Emulates tile/arch/sm80/atomic.h.
#pragma once

#include "tile/core/types.h"

namespace heddle::tile::sm80 {

template <int W, typename T>
inline void add_at(T* to, const T (&x)[W], HEDDLE_PLACE) {
  for (int i = 0; i < W; ++i) {
    if constexpr (is_float<T>) {
      atomicAdd(to + i, x[i], place);
    } else if constexpr (sizeof(T) == 8) {
      atomicAdd(reinterpret_cast<unsigned long long*>(to + i), static_cast<unsigned long long>(x[i]), place);
    } else {
      atomicAdd(reinterpret_cast<unsigned*>(to + i), static_cast<unsigned>(x[i]), place);
    }
  }
}

}  // namespace heddle::tile::sm80
