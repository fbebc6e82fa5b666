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

namespace detail {

// Neighbouring elements that a thread asks for at a time.
template <typename Element, int W>
struct alignas(sizeof(Element) * W % 16 == 0 ? 16
               : sizeof(Element) % 4 == 0    ? 4
                                             : 1) neighbours {
  static constexpr int width = W;
  Element part[W];
};

}  // namespace detail

// Columns of running results: the first `Columns` threads of each block have those of its rows, afterwards those of all
// rows of the grid. `all`: room in memory for gridDim.x * Columns elements of at least a word, 16-byte
// aligned, used once in a kernel. `shared`: as columns_apart() wants it for vectors of 4
// elements, where there are as many.
template <typename C, int Threads, int Columns, typename A>
TILE_INLINE void grid_columns(A& own, uint8_t* all, uint8_t* shared, grid_barrier& barrier) {
  using Element = decltype(element_of(own, 0));
  static_assert(A::width == 1, "a block has a thread for each element");
  constexpr int Wide = Columns % 4 == 0 ? 4 : 1;
  using Vector = detail::neighbours<Element, Wide>;
  constexpr int Vectors = Columns / Wide, Groups = Threads / Vectors;
  const int lane = threadIdx.x;
  if (lane < Columns) {
    reinterpret_cast<Element*>(all)[int(blockIdx.x) * Columns + lane] = own.part[0];
  }
  barrier.sync();
  const auto* vectors = reinterpret_cast<const Vector*>(all);
  Vector some;
  each_lane<Wide>([&](int i) { some.part[i] = C::template identity<Element>(); });
  if (lane < Vectors * Groups) {
#pragma unroll 4
    for (int b = lane / Vectors; b < int(gridDim.x); b += Groups) {
      const Vector v = vectors[b * Vectors + lane % Vectors];
      each_lane<Wide>([&](int i) { some.part[i] = C::apply(some.part[i], v.part[i]); });
    }
  }
  own.part[0] = columns_apart<C, Threads, Vectors, Groups>(some, shared, lane).part[0];
}

}  // namespace heddle::tile
