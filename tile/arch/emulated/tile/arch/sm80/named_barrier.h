// The emulated version of tile/arch/sm80/named_barrier.h.
#pragma once

#include <stdint.h>

namespace heddle::tile::cuda {

template <int Id>
inline void named_barrier_arrive(uint32_t threads, HEDDLE_PLACE) {
  heddle_emulated_api->barrier(Id, threads, emulated::BarrierMode::kArrive, false, place);
}
template <int Id>
inline void named_barrier_sync(uint32_t threads, HEDDLE_PLACE) {
  heddle_emulated_api->barrier(Id, threads, emulated::BarrierMode::kSync, false, place);
}

}  // namespace heddle::tile::cuda
