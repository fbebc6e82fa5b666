// Reductions over the blocks of a cluster. Each block stores its result into the shared memory of all blocks, where a
// barrier counts the bytes. Each block then combines the results in the order of the blocks. A block waits only for
// these stores; a cluster barrier would also wait for the block's other writes, at the L2. The memory for the exchange
// is used only once in a kernel.
#pragma once

#include "tile/arch/sm90/cluster.h"
#include "tile/op/cuda/team.h"

namespace heddle::tile {

using cta_group_barrier = sm90::Barrier;

// All threads call this at the beginning of a kernel. Before the first reduction, they must call sm90::cluster_wait(),
// so that all blocks have begun.
template <int Count>
TILE_INLINE void cta_group_begin(uint8_t* barriers) {
  if (threadIdx.x == 0) {
    auto* all = reinterpret_cast<cta_group_barrier*>(barriers);
#pragma unroll
    for (int i = 0; i < Count; ++i) all[i].init(1);
    sm90::fence_barrier_init();
  }
  sm90::cluster_arrive();
}

namespace detail {

// A value as the words to send to another block. The number of words is 1, 2 or a multiple of 4.
template <typename T>
struct cta_group_packet {
  static constexpr int kLeast = (sizeof(T) + 3) / 4;
  static constexpr int kWords = kLeast <= 2 ? kLeast : (kLeast + 3) / 4 * 4, kPiece = kWords < 4 ? kWords : 4;
  struct alignas(4 * kPiece) piece {
    uint32_t words[kPiece];
  };
  piece pieces[kWords / kPiece] = {};

  TILE_INLINE explicit cta_group_packet(const T& value) { TILE_COPY(pieces, &value, sizeof(T)); }
  TILE_INLINE explicit cta_group_packet(const uint32_t* at) {
#pragma unroll
    for (int k = 0; k < kWords / kPiece; ++k) pieces[k] = reinterpret_cast<const piece*>(at)[k];
  }
  TILE_INLINE void send(uint32_t* at, cta_group_barrier* barrier, int block) const {
#pragma unroll
    for (int k = 0; k < kWords / kPiece; ++k) sm90::store_words_async(at + k * kPiece, pieces[k].words, barrier, block);
  }
  TILE_INLINE void get(T& value) const {
    TILE_COPY(&value, pieces, sizeof(T));
  }
};

}  // namespace detail

inline constexpr int cta_group_slot_offset = 512;  // offset in a slot; the memory before it is for the warps of a block

// Reduces over all threads of `Blocks` blocks with `Threads` threads each. `slot` points to 1024 bytes that no other
// reduction uses.
template <typename C, int Threads, int Blocks, typename T>
TILE_INLINE T cta_group_reduce(T x, uint8_t* slot, cta_group_barrier* barrier) {
  using Packet = detail::cta_group_packet<T>;
  static_assert(Threads / 32 * sizeof(T) <= cta_group_slot_offset);
  static_assert(Blocks * sizeof(Packet) <= 1024 - cta_group_slot_offset);
  x = team_reduce<C, Threads>(x, reinterpret_cast<T*>(slot));
  auto* all = reinterpret_cast<uint32_t*>(slot + cta_group_slot_offset);
  if (threadIdx.x == 0) barrier->arrive_expect(Blocks * sizeof(Packet));
  if (threadIdx.x < Blocks) Packet(x).send(all + sm90::cluster_rank() * Packet::kWords, barrier, threadIdx.x);
  barrier->wait(0);
  Packet(all).get(x);
#pragma unroll
  for (int i = 1; i < Blocks; ++i) {
    T part;
    Packet(all + i * Packet::kWords).get(part);
    x = C::apply(x, part);
  }
  return x;
}

// Combines columns of running results over the blocks. On entry, the first `Columns` threads of each block hold the
// results of the block's rows. On return, they hold the results of all rows. `all` has room for Blocks * Columns *
// A::width elements of at least a word, and is 16-byte aligned.
template <typename C, int Columns, int Blocks, typename A>
TILE_INLINE void cta_group_columns(A& own, uint8_t* all, cta_group_barrier* barrier) {
  using Packet = detail::cta_group_packet<decltype(own.part)>;
  auto* words = reinterpret_cast<uint32_t*>(all);
  const int column = threadIdx.x;
  if (column == 0) barrier->arrive_expect(Blocks * Columns * sizeof(Packet));
  if (column >= Columns) return;
  const Packet mine(own.part);
#pragma unroll
  for (int b = 0; b < Blocks; ++b) {
    mine.send(words + (sm90::cluster_rank() * Columns + column) * Packet::kWords, barrier, b);
  }
  barrier->wait(0);
  Packet(words + column * Packet::kWords).get(own.part);
#pragma unroll
  for (int b = 1; b < Blocks; ++b) {
    A other;
    Packet(words + (b * Columns + column) * Packet::kWords).get(other.part);
    each_lane<A::width>([&](int i) { set_element(own, i, C::apply(element_of(own, i), element_of(other, i))); });
  }
}

}  // namespace heddle::tile
