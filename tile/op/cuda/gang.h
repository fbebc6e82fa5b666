// Reductions over the blocks of a cluster. Each block hands its result to all of them through their shared memory, and
// each combines them in the order of the blocks. Before the first of them the cluster has to have begun
// (cluster_arrive() and cluster_wait()); the memory that is handed over is used once in a kernel.
#pragma once

#include "tile/arch/sm90/cluster.h"
#include "tile/op/cuda/team.h"

namespace heddle::tile {

inline constexpr int gang_slot_offset = 256;  // behind what the warps of a block use of a slot

// Over all threads of `Blocks` blocks of `Threads`. `slot`: the reduction's own, of 512 bytes.
template <typename C, int Threads, int Blocks, typename T>
TILE_INLINE T gang_reduce(T x, uint8_t* slot) {
  static_assert(Threads / 32 * sizeof(T) <= gang_slot_offset && Blocks * sizeof(T) <= 512 - gang_slot_offset);
  x = team_reduce<C, Threads>(x, reinterpret_cast<T*>(slot));
  T* all = reinterpret_cast<T*>(slot + gang_slot_offset);
  if (threadIdx.x < Blocks) *sm90::in_block(all + sm90::cluster_rank(), threadIdx.x) = x;
  __syncwarp();  // the cluster's barrier wants whole warps
  sm90::cluster_sync();
  T r = all[0];
#pragma unroll
  for (int i = 1; i < Blocks; ++i) r = C::apply(r, all[i]);
  return r;
}

// Columns of running results: the first `Columns` threads of each block have those of its rows, afterwards those of all
// rows. `all`: room for Blocks * Columns * A::width elements, 16-byte aligned.
template <typename C, int Columns, int Blocks, typename A>
TILE_INLINE void gang_columns(A& own, uint8_t* all) {
  using Element = decltype(element_of(own, 0));
  constexpr int W = A::width;
  auto* elements = reinterpret_cast<Element*>(all);
  const int column = threadIdx.x;
  if (column < Columns) {
#pragma unroll
    for (int b = 0; b < Blocks; ++b) {
      Element* there = sm90::in_block(elements + (sm90::cluster_rank() * Columns + column) * W, b);
      each_lane<W>([&](int i) { there[i] = element_of(own, i); });
    }
  }
  __syncwarp();
  sm90::cluster_sync();
  if (column < Columns) {
#pragma unroll
    for (int b = 0; b < Blocks; ++b) {
      each_lane<W>([&](int i) {
        const Element part = elements[(b * Columns + column) * W + i];
        set_element(own, i, b == 0 ? part : C::apply(element_of(own, i), part));
      });
    }
  }
}

}  // namespace heddle::tile
