// The operations that reductions use to combine two values, for vectors (lane by lane) and single numbers. max_of and
// min_of propagate NaN; any_of and all_of work on 0 and 1.
#pragma once

#include "tile/arch/vec.h"

namespace heddle::tile {

#define TILE_COMBINER(NAME, IDENTITY, COMBINED)                    \
  struct NAME {                                                    \
    template <typename T>                                          \
    TILE_INLINE static constexpr T identity() {                    \
      return IDENTITY;                                             \
    }                                                              \
    template <typename T, int W>                                   \
    TILE_INLINE static vec<T, W> apply(vec<T, W> a, vec<T, W> b) { \
      return COMBINED;                                             \
    }                                                              \
    template <typename T>                                          \
    TILE_INLINE static T apply(T a, T b) {                         \
      return apply(vec<T, 1>{a}, vec<T, 1>{b})[0];                 \
    }                                                              \
  };
TILE_COMBINER(sum_of, T(0), a + b)
TILE_COMBINER(prod_of, T(1), a* b)
TILE_COMBINER(max_of, lowest<T>(), max(a, b))
TILE_COMBINER(min_of, highest<T>(), min(a, b))
TILE_COMBINER(any_of, T(0), max(a, b))
TILE_COMBINER(all_of, T(1), min(a, b))
#undef TILE_COMBINER

}  // namespace heddle::tile
