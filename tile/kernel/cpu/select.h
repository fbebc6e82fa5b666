// Selects the first k elements of a column in ascending or descending order, and their positions.
#pragma once

#include "tile/op/lanes.h"
#include "tile/op/order.h"

namespace heddle::tile {

namespace detail {

// An integer type whose upper half holds a key and whose lower half holds a position. Elements are selected in
// ascending order of these integers.
template <typename U>
struct candidate {
  using type = uint64_t;
};
template <>
struct candidate<uint64_t> {
  __extension__ using type = unsigned __int128;
};

// Restores the heap property of a max-heap after the element at `i` has changed.
template <typename K>
TILE_INLINE void sift_down(K* heap, int64_t n, int64_t i) {
  const K moved = heap[i];
  for (int64_t child = 2 * i + 1; child < n; child = 2 * i + 1) {
    if (child + 1 < n && heap[child] < heap[child + 1]) ++child;
    if (!(moved < heap[child])) break;
    heap[i] = heap[child];
    i = child;
  }
  heap[i] = moved;
}

}  // namespace detail

// Selects k of the n elements x[j * stride], for n < 2^32. Writes values[i * stride] and positions[i * stride] for i <
// k. Among equal elements, the one with the lower position comes first. `scratch` has 16 * k bytes.
template <bool Largest, typename T>
void select_best(const T* x, int64_t stride, int64_t n, int64_t k, T* values, int64_t* positions, void* scratch) {
  using U = decltype(order_key(x));
  using K = typename detail::candidate<U>::type;
  K* heap = static_cast<K*>(scratch);
  const auto at = [&](int64_t j) __attribute__((always_inline)) {
    const U key = order_key(x + j * stride);
    return (K(Largest ? U(~key) : key) << (8 * sizeof(K) / 2)) | K(uint64_t(j));
  };
  for (int64_t j = 0; j < k; ++j) heap[j] = at(j);
  for (int64_t i = k / 2; i-- > 0;) detail::sift_down(heap, k, i);
  for (int64_t j = k; j < n; ++j) {
    const K c = at(j);
    if (c < heap[0]) {
      heap[0] = c;
      detail::sift_down(heap, k, 0);
    }
  }
  for (int64_t last = k; last-- > 1;) {
    const K worst = heap[0];
    heap[0] = heap[last];
    heap[last] = worst;
    detail::sift_down(heap, last, 0);
  }
  for (int64_t i = 0; i < k; ++i) {
    const auto j = int64_t(uint64_t(heap[i]) & (sizeof(K) == 8 ? 0xffffffffu : ~uint64_t(0)));
    values[i * stride] = x[j * stride];
    positions[i * stride] = j;
  }
}

}  // namespace heddle::tile
