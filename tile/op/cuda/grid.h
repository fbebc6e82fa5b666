// Barriers and reductions over all blocks of a cooperative grid.
#pragma once

#include "tile/arch/sm80/global.h"
#include "tile/op/cuda/team.h"

namespace heddle::tile {

// `counters`: 256 bytes that are zero before the kernel, and after it. Arrivals only grow within a kernel, so that a
// block that is late for one barrier cannot be taken for one that is early for the next.
struct grid_barrier {
  uint32_t* counters;
  uint32_t due = 0;

  // What any thread of the grid wrote before is seen by all afterwards.
  TILE_INLINE void sync() {
    due += gridDim.x;
    __syncthreads();
    if (threadIdx.x == 0) {
      sm80::add_release(counters);
      while (sm80::load_acquire(counters) < due) {
      }
    }
    __syncthreads();
  }
  // After the last sync() of a block. The last block to leave waits for nobody and puts zeros back.
  TILE_INLINE void leave() {
    constexpr int departures = 32;  // on a line of its own
    if (threadIdx.x == 0 && atomicAdd(counters + departures, 1u) == gridDim.x - 1) {
      counters[0] = 0;
      counters[departures] = 0;
    }
  }
};

// Columns of running results: the first `Columns` threads of each block have those of its rows, afterwards those of all
// rows of the grid. `all`: room in memory for gridDim.x * Columns * A::width elements, used once in a kernel. `shared`:
// as columns_reduce() wants it for Columns * Groups threads.
template <typename C, int Threads, int Columns, int Groups, typename A>
TILE_INLINE void grid_columns(A& own, uint8_t* all, uint8_t* shared, grid_barrier& barrier) {
  using Element = decltype(element_of(own, 0));
  constexpr int W = A::width;
  auto* elements = reinterpret_cast<Element*>(all);
  const int lane = threadIdx.x;
  if (lane < Columns) {
    each_lane<W>([&](int i) { elements[(int(blockIdx.x) * Columns + lane) * W + i] = element_of(own, i); });
  }
  barrier.sync();
  A rest;
  if (lane < Columns * Groups) {
    for (int b = lane / Columns; b < int(gridDim.x); b += Groups) {
      each_lane<W>([&](int i) {
        set_element(rest, i, C::apply(element_of(rest, i), elements[(b * Columns + lane % Columns) * W + i]));
      });
    }
  }
  columns_reduce<C, Threads, Columns, Groups>(rest, shared, lane);
  own = rest;
}

}  // namespace heddle::tile
