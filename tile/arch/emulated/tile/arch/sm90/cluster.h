// The emulator's version of tile/arch/sm90/cluster.h.
#pragma once

#include "tile/arch/sm90/barrier.h"

namespace heddle::tile::sm90 {

inline void store_async(float* at, float value, Barrier* barrier, uint32_t block, HEDDLE_PLACE) {
  heddle_emulated_api->store_async(shared_address(at), block, &value, sizeof value, shared_address(barrier), place);
}

template <int Words>
inline void store_words_async(uint32_t* at, const uint32_t (&w)[Words], Barrier* barrier, uint32_t block,
                              HEDDLE_PLACE) {
  heddle_emulated_api->store_async(shared_address(at), block, w, sizeof w, shared_address(barrier), place);
}

}  // namespace heddle::tile::sm90
