// The emulated version of tile/arch/sm90/tma.h. A box is copied at some time between its request and the wait for it.
#pragma once

#include <stdint.h>

#include "tile/arch/sm90/barrier.h"

namespace heddle::tile::sm90 {

struct alignas(64) TensorMap {
  uint64_t words[16];
};

enum class CacheHint : uint64_t { kEvictNormal, kEvictFirst, kEvictLast };

inline void prefetch(const TensorMap&) {}
inline void in_use(uint32_t) {}
inline void prefetch_global(const void*, uint32_t) {}
inline void prefetch_box(const TensorMap&, int32_t, int32_t, int32_t) {}

inline void load_box(const TensorMap& map, Barrier& full, void* to, int32_t inner, int32_t row, int32_t batch,
                     CacheHint, HEDDLE_PLACE) {
  const int32_t at[3] = {inner, row, batch};
  heddle_emulated_api->load_box(&map, shared_address(to), shared_address(&full), at, 3, 0, place);
}
inline void load_box(const TensorMap& map, Barrier& full, void* to, int32_t inner, int32_t row, int32_t batch,
                     int32_t outer, CacheHint, HEDDLE_PLACE) {
  const int32_t at[4] = {inner, row, batch, outer};
  heddle_emulated_api->load_box(&map, shared_address(to), shared_address(&full), at, 4, 0, place);
}
inline void load_box_multicast(const TensorMap& map, Barrier& full, void* to, int32_t inner, int32_t row, int32_t batch,
                               uint16_t blocks, CacheHint, HEDDLE_PLACE) {
  const int32_t at[3] = {inner, row, batch};
  heddle_emulated_api->load_box(&map, shared_address(to), shared_address(&full), at, 3, blocks, place);
}

inline void load_windows(const TensorMap& map, Barrier& full, void* to, int32_t channel, int32_t x, int32_t y,
                         int32_t image, int32_t tap_x, int32_t tap_y, CacheHint, HEDDLE_PLACE) {
  const int32_t at[6] = {channel, x, y, image, tap_x, tap_y};
  heddle_emulated_api->load_box(&map, shared_address(to), shared_address(&full), at, 6, 0, place);
}
inline void load_windows_multicast(const TensorMap& map, Barrier& full, void* to, int32_t channel, int32_t x, int32_t y,
                                   int32_t image, int32_t tap_x, int32_t tap_y, uint16_t blocks, CacheHint,
                                   HEDDLE_PLACE) {
  const int32_t at[6] = {channel, x, y, image, tap_x, tap_y};
  heddle_emulated_api->load_box(&map, shared_address(to), shared_address(&full), at, 6, blocks, place);
}

inline void store_box(const TensorMap& map, const void* from, int32_t inner, int32_t row, int32_t batch, HEDDLE_PLACE) {
  const int32_t at[3] = {inner, row, batch};
  heddle_emulated_api->store_box(&map, shared_address(from), at, 3, place);
}
inline void commit_stores() {
  heddle_emulated_api->store_commit();
}
template <int Pending>
inline void wait_stores_read(HEDDLE_PLACE) {
  heddle_emulated_api->store_wait(Pending, place);
}

}  // namespace heddle::tile::sm90
