// Shared by kernels whose clusters divide the k of a tile of D: assigns parts to blocks, exchanges sums, and finishes
// the rows that a block owns.
#pragma once

#include "tile/arch/sm90/barrier.h"
#include "tile/core/cuda_gemm.h"
#include "tile/kernel/cuda/gemm/fragments_to_rows.h"
#include "tile/kernel/cuda/row.h"

namespace heddle::tile::cuda {

// The work of a block: `count` k-tiles k, k + step, ... m: the first row of A; row: its index among the rows of its
// class.
struct ClusterSplitKUnit {
  int32_t m, n, batch, split, k, step, count;  // k, step and count in k-tiles
  int32_t row, number;                         // number: the index of the class
};

// Uses kTileM, kTileN, kClusterK, kStore of Config and kClasses of Traits: the rows of a tile of A are kClasses apart.
// InTurn: k-tiles are dealt one by one, so that all blocks read neighbouring memory at the same time; else each block
// has a contiguous run.
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

// The bytes that all_here waits for: the other blocks' sums of this block's rows.
template <typename Config, typename Traits>
inline constexpr int parts_bytes = (Config::kClusterK - 1) * Traits::kSlice * 4;

// Sends the sums of other blocks' rows to these blocks, and waits for the sums of this block's rows: slice p of `sums`
// has block p's rows, slice p of `received` comes from block p. All threads call it after writing their sums. The
// cluster barrier must have been arrived at, for cluster_wait() here; it is arrived at again on return.
template <typename Config, typename Traits>
__device__ inline void cluster_splitk_exchange(const typename Traits::Acc* sums, typename Traits::Acc* received,
                                               sm90::Barrier& all_here, int32_t rank) {
  sm90::fence_async_shared();
  sm90::cluster_wait();  // the others have begun
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

// Adds up the rows of this block in order and finishes them. `from`: [addend][row of the slice][column]; addend number
// `rank` is read from `own` instead. Uses of Traits: Acc, kRows and kColumns of a tile in D, kSliceRows of a block,
// kPitch, kSlice = kSliceRows * kPitch, kAddends, kFinishers threads, kNeighbours that an epilogue gets, kClasses.
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
