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
// rows of the grid. Each column is combined by one block, so that none reads the parts of all others. `all`: room in
// memory for (gridDim.x + 1) * Columns elements of at least a word, 16-byte aligned, used once in a kernel. `shared`:
// an element for each warp.
template <typename C, int Threads, int Columns, typename A>
TILE_INLINE void grid_columns(A& own, uint8_t* all, uint8_t* shared, grid_barrier& barrier) {
  using Element = decltype(element_of(own, 0));
  static_assert(A::width == 1, "a block has a thread for each element");
  auto* parts = reinterpret_cast<Element*>(all);
  const int lane = threadIdx.x, block = blockIdx.x, blocks = gridDim.x;
  Element* whole = parts + Columns * blocks;
  if (lane < Columns) parts[lane * blocks + block] = own.part[0];
  barrier.sync();
  for (int column = block; column < Columns; column += blocks) {
    Element x = C::template identity<Element>();
    for (int b = lane; b < blocks; b += Threads) x = C::apply(x, parts[column * blocks + b]);
    if (column != block) __syncthreads();
    x = team_reduce<C, Threads>(x, reinterpret_cast<Element*>(shared));
    if (lane == 0) whole[column] = x;
  }
  barrier.sync();
  if (lane < Columns) own.part[0] = whole[lane];
}

}  // namespace heddle::tile
