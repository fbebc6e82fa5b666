// Twin of tile/arch/sm90/cluster.h.
#pragma once

#include "tile/arch/sm90/barrier.h"

namespace heddle::tile::sm90 {

inline void store_async(float* at, float value, Barrier* barrier, uint32_t block, HEDDLE_PLACE) {
  heddle_emulated_api->store_async(shared_address(at), block, &value, sizeof value, shared_address(barrier), place);
}

inline void cluster_arrive(HEDDLE_PLACE) {
  heddle_emulated_api->cluster_arrive(place);
}
inline void cluster_wait(HEDDLE_PLACE) {
  heddle_emulated_api->cluster_wait(place);
}

template <typename T>
inline T* in_block(T* own, uint32_t rank) {
  const uint8_t* mine = heddle_emulated_api->cluster_shared(cluster_rank());
  const auto offset = reinterpret_cast<const uint8_t*>(own) - mine;
  return reinterpret_cast<T*>(heddle_emulated_api->cluster_shared(rank) + offset);
}

}  // namespace heddle::tile::sm90
