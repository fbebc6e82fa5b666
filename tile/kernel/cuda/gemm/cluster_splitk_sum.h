// Functions for kernels whose clusters divide the k of one tile of D among their blocks. They assign parts of k to
// blocks, exchange partial sums, and finish the rows of D that a block owns.
#pragma once

#include "tile/arch/sm90/barrier.h"
#include "tile/core/cuda_gemm.h"
#include "tile/kernel/cuda/gemm/fragments_to_rows.h"
#include "tile/kernel/cuda/row.h"

namespace heddle::tile::cuda {

// The work of a block. The rows of A are divided into classes: class c contains the rows c, c + kClasses, ... A tile of
// A contains rows of one class.
//   m               the first row of A
//   row             the index of this row within its class
//   number          the index of the class
//   k, step, count  the block's k-tiles are k, k + step, ...; there are `count` of them
struct ClusterSplitKUnit {
  int32_t m, n, batch, split, k, step, count;  // k, step and count in k-tiles
  int32_t row, number;                         // index within the class; index of the class
};

// Returns the work of the block with index `rank` in its cluster. Uses kTileM, kTileN, kClusterK and kStore of Config,
// and kClasses of Traits. If InTurn, k-tiles are assigned to blocks round-robin, so that all blocks read neighbouring
// memory at the same time. Otherwise each block has a contiguous range of k-tiles.
template <typename Config, typename Traits, bool InTurn>
__device__ inline ClusterSplitKUnit cluster_splitk_unit(const ClusterSplitKArgs& args, int32_t rank) {
  ClusterSplitKUnit unit;
  constexpr int kClasses = Traits::kClasses;
  const auto tile = static_cast<int32_t>(blockIdx.x / Config::kClusterK);
  unit.number = tile % kClasses;
  unit.row = tile / kClasses * Config::kTileM;
  unit.m = unit.row * kClasses + unit.number;
  unit.n = static_cast<int32_t>(blockIdx.y) * Config::kTileN;
  unit.batch = static_cast<int32_t>(blockIdx.z);
  unit.split = 0;
  if constexpr (Config::kStore == GemmStore::kPartial) {
    unit.batch = static_cast<int32_t>(blockIdx.z / static_cast<uint32_t>(args.splits));
    unit.split = static_cast<int32_t>(blockIdx.z) - unit.batch * args.splits;
  }
  const int32_t part = unit.split * Config::kClusterK + rank;
  if constexpr (InTurn) {
    unit.k = part;
    unit.step = Config::kStore == GemmStore::kPartial ? args.splits * Config::kClusterK : Config::kClusterK;
  } else {
    unit.k = part * args.k_each + (part < args.k_more ? part : args.k_more);
    unit.step = 1;
  }
  unit.count = args.k_each + (part < args.k_more ? 1 : 0);
  return unit;
}

// The number of bytes that the barrier all_here waits for: the other blocks' sums for rows of this block.
template <typename Config, typename Traits>
inline constexpr int parts_bytes = (Config::kClusterK - 1) * Traits::kSlice * 4;

// Sends this block's sums for rows of other blocks to those blocks, and waits for the other blocks' sums for rows of
// this block. Slice p of `sums` contains the rows of block p. Slice p of `received` is received from block p. All
// threads call this function after they have written their sums. The caller must have called cluster_arrive(); this
// function calls cluster_wait(). It calls cluster_arrive() again before it returns.
template <typename Config, typename Traits>
__device__ inline void cluster_splitk_exchange(const typename Traits::Acc* sums, typename Traits::Acc* received,
                                               sm90::Barrier& all_here, int32_t rank) {
  sm90::fence_async_shared();
  sm90::cluster_wait();  // the other blocks have started
  __syncthreads();
  const auto other = static_cast<int32_t>(threadIdx.x);
  if (other < Config::kClusterK && other != rank) {
    sm90::copy_to_block(received + rank * Traits::kSlice, sums + other * Traits::kSlice, Traits::kSlice * 4, all_here,
                        other);
  }
  __syncwarp();
  all_here.wait(0);
  sm90::cluster_arrive();
}

// Adds the partial sums of the rows that this block owns, in a fixed order, and passes the results to the epilogue or
// stores them as partial sums. `from` has the shape [addend][row of the slice][column]; addend `rank` is read from
// `own` instead.
//
// Members of Traits that are used:
//   Acc                  the accumulator type
//   kRows, kColumns      of a tile, in D
//   kSliceRows           rows that a block owns
//   kPitch, kSlice       pitch of a row; kSlice = kSliceRows * kPitch
//   kAddends             partial sums per element
//   kFinishers           threads that execute this function
//   kNeighbours          elements of a row that an epilogue gets at once
//   kClasses             classes of rows (ClusterSplitKUnit)
template <typename Config, typename Traits, typename Epilogue>
__device__ inline void cluster_splitk_finish(const ClusterSplitKArgs& args, const Epilogue& epilogue,
                                             const typename Traits::Acc* from, const typename Traits::Acc* own,
                                             const ClusterSplitKUnit& unit, int32_t rank) {
  using Acc = typename Traits::Acc;
  constexpr int W = Traits::kNeighbours, kWide = W < 4 ? W : 4, kPair = kColumnsOfPair<Epilogue>;
  constexpr int kAcross = (Traits::kColumns / kPair + W - 1) / W, kCount = Traits::kSliceRows * kAcross;
  constexpr int kRowStep = Config::kSwapped ? 1 : Traits::kClasses;
  constexpr int kColumnStep = Config::kSwapped ? Traits::kClasses : 1;
  static_assert(kColumnStep == 1 || W == 1);
  static_assert(kPair == 1 || (kColumnStep == 1 && Traits::kColumns % 16 == 0 && kGemmGateColumns % W == 0));
  const int32_t first = rank * Traits::kSliceRows, row0 = (Config::kSwapped ? unit.n : unit.m) + first * kRowStep;
  const int32_t col0 = (Config::kSwapped ? unit.m : unit.n) / kPair, columns = Config::kSwapped ? args.m : args.n;
  int32_t rows = ((Config::kSwapped ? args.n : args.m) - row0 + kRowStep - 1) / kRowStep;  // of the slice, inside D
  if (rows > Traits::kRows - first) rows = Traits::kRows - first;
#pragma unroll 2
  for (uint32_t i = threadIdx.x; i < kCount; i += Traits::kFinishers) {
    const auto r = static_cast<int>(i / kAcross), c = static_cast<int>(i % kAcross) * W;
    const int row = row0 + r * kRowStep, col = col0 + c * kColumnStep;
    if (r >= rows || col >= columns) continue;
    const auto sum = [&](Acc(&v)[W], int column) {
#pragma unroll
      for (int part = 0; part < Traits::kAddends; ++part) {
        Acc x[W];
        load_row<kWide>(x, (part == rank ? own : from + part * Traits::kSlice) + r * Traits::kPitch + column, W);
#pragma unroll
        for (int j = 0; j < W; ++j) v[j] += x[j];
      }
    };
    Acc v[W] = {};
    sum(v, kPair == 2 ? gemm_gate_column(c) : c);
    const int n = columns - col < W ? columns - col : W;
    if constexpr (Config::kStore == GemmStore::kPartial) {
      Acc* to = static_cast<Acc*>(args.partial) + unit.split * args.p_split + unit.batch * args.p_batch;
      store_row<kWide>(to + row * args.p_row + col, v, n);
    } else {
      if constexpr (kPair == 2) {
        Acc w[W] = {};
        sum(w, gemm_gate_column(c) + kGemmGateColumns);
        epilogue.gate(v, w, unit.batch, row, col, n);
      }
      epilogue(v, unit.batch, row, col, n);
    }
  }
}

}  // namespace heddle::tile::cuda
