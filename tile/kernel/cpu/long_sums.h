// Sums of micro tiles over parts of k, with the rounding errors of the sums.
#pragma once

#include "tile/op/reduce.h"

namespace heddle::tile::detail {

// Memory for the sums and their rounding errors. Each micro tile has room for `elements` elements. The elements in use
// are at the start of this room, in whole vectors.
template <typename T>
struct LongSums {
  T *sums, *errors;
  int64_t elements;

  const T* tile(int64_t index) const { return sums + index * elements; }
  TILE_INLINE void add(int64_t index, const T* c, int64_t count, bool is_first) const {
    constexpr int W = kVectorBytes / int(sizeof(T));
    T *sum = sums + index * elements, *error = errors + index * elements;
    for (int64_t i = 0; i < count; i += W) {
      const vec<T, W> v = load<W>(c + i);
      if (is_first) {
        store(sum + i, v);
        store(error + i, zero<T, W>());
      } else {
        add_compensated(sum + i, error + i, v, index_constant<W>{});
      }
    }
  }
};

}  // namespace heddle::tile::detail
