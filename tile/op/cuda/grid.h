// Reductions across the blocks of a cooperative grid. Each block passes its partial result to the others through global
// memory, in packets that show whether they have arrived. A grid barrier would also wait for all other writes of a
// block. It would also need two round trips through memory: one for the barrier and one for the data.
#pragma once

#include "tile/arch/sm80/global.h"
#include "tile/op/cuda/team.h"

namespace heddle::tile {

namespace detail {

// A value as a sequence of quads. Each quad has three data words and a check word, chosen so that the exclusive or of
// all four words is all ones. All four words are always used: ptxas (CUDA 13.0) splits a load of a quad with unused
// words into single words, and the load must be a single access.
template <typename T>
struct grid_packet {
  static constexpr int kQuads = (sizeof(T) + 11) / 12;
  sm80::Quad quads[kQuads] = {};

  TILE_INLINE static void put(const T& value, sm80::Quad* at) {
    uint32_t words[3 * kQuads] = {};
    TILE_COPY(words, &value, sizeof(T));
#pragma unroll
    for (int k = 0; k < kQuads; ++k) {
      const uint32_t a = words[3 * k], b = words[3 * k + 1], c = words[3 * k + 2];
      sm80::store_together(at + k, {{a, b, c, ~(a ^ b ^ c)}});
    }
  }
  TILE_INLINE void load(const sm80::Quad* at) {
#pragma unroll
    for (int k = 0; k < kQuads; ++k) quads[k] = sm80::load_together(at + k);
  }
  TILE_INLINE bool is_there() const {
    bool all = true;
#pragma unroll
    for (int k = 0; k < kQuads; ++k) {
      const auto& w = quads[k].words;
      all = all && (w[0] ^ w[1] ^ w[2] ^ w[3]) == ~0u;
    }
    return all;
  }
  TILE_INLINE T value() const {
    uint32_t words[3 * kQuads];
#pragma unroll
    for (int k = 0; k < 3 * kQuads; ++k) words[k] = quads[k / 3].words[k % 3];
    T r;
    TILE_COPY(&r, words, sizeof(T));
    return r;
  }
};

}  // namespace detail

// A group of `Blocks` consecutive blocks that exchange results. The packets of the group take `Quads` quads of memory
// in total. `memory` must be zero before the kernel, and it is zero again after the kernel. The 128 bytes before the
// packets hold the number of blocks that have departed.
template <int Blocks, int Quads>
struct grid_cta_group {
  static constexpr int kHead = 128, kBytes = kHead + Quads * 16;
  uint8_t* memory;
  uint32_t departed = 0;

  TILE_INLINE explicit grid_cta_group(uint8_t* all) : memory(all + blockIdx.x / Blocks * kBytes) {}
  TILE_INLINE sm80::Quad* packets() const { return reinterpret_cast<sm80::Quad*>(memory + kHead); }
  // A block must call this after its last exchange, when all threads of the block have read the packets of the other
  // blocks. Later relaxed writes cannot change values that were already read, so no memory ordering is needed.
  TILE_INLINE void depart() {
    if (threadIdx.x == 0) departed = atomicAdd(reinterpret_cast<uint32_t*>(memory), 1u);
  }
  // The last block to depart resets the memory to zero.
  TILE_INLINE void leave() {
    if (!__syncthreads_or(threadIdx.x == 0 && departed == Blocks - 1)) return;
    for (int k = threadIdx.x; k < Quads; k += blockDim.x) sm80::store_together(packets() + k, {});
    if (threadIdx.x == 0) atomicExch(reinterpret_cast<uint32_t*>(memory), 0u);
  }
};

// Combines the running results of each column over all blocks of a cta_group. On entry, the first `Columns` threads of
// each block hold the results over the block's rows. On return, they hold the results over the rows of all blocks of
// the cta_group. `packets` are Blocks * Columns packets, which a kernel may use only once. `shared` has one element per
// thread and may be reused after the next barrier.
template <typename C, int Threads, int Columns, int Blocks, typename A>
TILE_INLINE void grid_columns(A& own, sm80::Quad* packets, uint8_t* shared) {
  using Element = decltype(element_of(own, 0));
  using Packet = detail::grid_packet<Element>;
  static_assert(A::width == 1 && Columns <= Threads, "a block has a thread for each element");
  constexpr int most = Threads / Columns, Parts = most < Blocks ? most : Blocks, Each = (Blocks + Parts - 1) / Parts;
  const int lane = threadIdx.x, part = lane / Columns, block = blockIdx.x % Blocks;
  if (lane < Columns) Packet::put(own.part[0], packets + (block * Columns + lane) * Packet::kQuads);
  __syncthreads();  // waits for earlier reads of `shared`
  Element x = C::template identity<Element>();
  if (part < Parts) {
    const sm80::Quad* from = packets + lane * Packet::kQuads;
    constexpr int step = Parts * Columns * Packet::kQuads;
    Packet found[Each];  // all loads are issued before the first is waited for
#pragma unroll
    for (int i = 0; i < Each; ++i) {
      if (i * Parts + part < Blocks) found[i].load(from + i * step);
    }
#pragma unroll
    for (int i = 0; i < Each; ++i) {
      if (i * Parts + part >= Blocks) continue;
      while (!found[i].is_there()) found[i].load(from + i * step);
      x = C::apply(x, found[i].value());
    }
  }
  auto* all = reinterpret_cast<Element*>(shared);
  if (part < Parts) all[lane] = x;
  __syncthreads();
  if (lane < Columns) {
#pragma unroll
    for (int p = 1; p < Parts; ++p) x = C::apply(x, all[p * Columns + lane]);
    own.part[0] = x;
  }
}

}  // namespace heddle::tile
