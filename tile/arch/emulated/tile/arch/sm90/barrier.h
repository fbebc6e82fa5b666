// Emulates tile/arch/sm90/barrier.h.
#pragma once

#include "tile/arch/sm80/named_barrier.h"
#include "tile/arch/sm80/shared.h"

namespace heddle::tile::sm90 {

using cuda::named_barrier_arrive;
using cuda::named_barrier_sync;
using cuda::shared_address;

struct Barrier {
  uint64_t state;

  void init(uint32_t arrivals, HEDDLE_PLACE) {
    heddle_emulated_api->barrier_init(shared_address(this), arrivals, place);
  }
  void arrive_expect(uint32_t bytes, HEDDLE_PLACE) {
    heddle_emulated_api->barrier_arrive(shared_address(this), emulated::kOwnBlock, bytes, place);
  }
  void arrive(HEDDLE_PLACE) {
    heddle_emulated_api->barrier_arrive(shared_address(this), emulated::kOwnBlock, 0, place);
  }
  void arrive_behind_copies(HEDDLE_PLACE) {
    heddle_emulated_api->copy_commit();
    heddle_emulated_api->copy_wait(0);
    arrive(place);
  }
  void arrive_at(uint32_t block, HEDDLE_PLACE) {
    heddle_emulated_api->barrier_arrive(shared_address(this), block, 0, place);
  }
  void wait_briefly(uint32_t) {}
  void wait(uint32_t parity, HEDDLE_PLACE) { heddle_emulated_api->barrier_wait(shared_address(this), parity, place); }
};

inline void fence_barrier_init() {
  heddle_emulated_api->fence_barrier_init();
}
inline void fence_async_shared() {
  heddle_emulated_api->fence_async();
}
inline void fence_async_global() {}

inline uint32_t cluster_rank() {
  return heddle_emulated_thread->block->cluster_rank;
}
inline void copy_to_block(void* to, const void* from, uint32_t bytes, Barrier& full, uint32_t block, HEDDLE_PLACE) {
  heddle_emulated_api->copy_shared(shared_address(to), shared_address(from), bytes, shared_address(&full), block,
                                   place);
}
inline void cluster_sync(HEDDLE_PLACE) {
  heddle_emulated_api->cluster_arrive(place);
  heddle_emulated_api->cluster_wait(place);
}

inline void cluster_arrive(HEDDLE_PLACE) {
  heddle_emulated_api->cluster_arrive(place);
}
inline void cluster_wait(HEDDLE_PLACE) {
  heddle_emulated_api->cluster_wait(place);
}

template <int Registers>
inline void warpgroup_reg_dealloc(HEDDLE_PLACE) {
  heddle_emulated_api->set_registers(Registers, place);
}
template <int Registers>
inline void warpgroup_reg_alloc(HEDDLE_PLACE) {
  heddle_emulated_api->set_registers(Registers, place);
}

}  // namespace heddle::tile::sm90
