// D = epilogue(A B) on sm_90a, for problems limited by memory or latency: D has few rows, few columns, or few elements.
// Every block computes one tile and exits. The blocks of a cluster split k. Each block adds up the partial sums of some
// rows of the tile and finishes these rows.
//
// With tensor maps, a block starts fast: the host has precomputed all integer divisions, and all warps help to request
// the first tiles of the ring. These loads are in flight 0.3 us after the block begins. Afterwards one warp loads, and
// one or two warpgroups multiply. Loading the first tile takes most of a microsecond. A single thread issues the later
// TMA loads, which takes a tenth of a microsecond per k-tile. With views, 128 threads load all tiles instead.
//
// A generated unit provides an epilogue that stores D, as for gemm_reduce(), and a configuration with named fields:
//
//   struct Config {
//     using In = tile::half;                      // half or bfloat; if both operands are contiguous along k, also
//                                                 // tf32, tf32x2, e4m3, e5m2 or int8_t
//     static constexpr int kTileM = 64, kTileN = 16, kStages = 8;
//     static constexpr int kConsumers = 1;        // warpgroups that multiply, side by side along m
//     static constexpr int kClusterK = 4;         // blocks of a cluster, which split k
//     static constexpr bool kAKMajor = true, kBKMajor = true;
//     static constexpr bool kSwapped = true;      // the kernel computes the transpose of D
//     static constexpr bool kViews = false;       // operands are views (load.h), not tensor maps
//     // Tensor maps only: the operand is read once, so the L2 evicts it first.
//     static constexpr bool kReadOnceA = true, kReadOnceB = false;
//     // Tensor maps only: no launch writes the operand, so it is loaded while the preceding kernel still runs.
//     static constexpr bool kConstantA = false, kConstantB = true;
//     static constexpr auto kStore = tile::GemmStore::kEpilogue;  // or kPartial, if k is split beyond the cluster
//     static constexpr int kClasses = 8;          // the number of classes of rows of A
//   };
//
// kClasses is 1 if the rows of A are aligned to 16 bytes. Otherwise class i has the rows i, i + kClasses, ... of A. The
// rows of a class have the same misalignment, and all rows of a tile belong to one class. The tensor map of a class
// begins at the multiple of 16 bytes before its first row. To compensate, each class has a copy of B that is shifted
// along k. The copies are the batches of B (tile/kernel/cuda/operand/misaligned_copies.h).
#pragma once

#include "tile/arch/sm90/barrier.h"
#include "tile/arch/sm90/convert.h"
#include "tile/arch/sm90/dependent.h"
#include "tile/arch/sm90/tma.h"
#include "tile/arch/sm90/wgmma.h"
#include "tile/core/cuda_gemm.h"
#include "tile/kernel/cuda/gemm/cluster_splitk_sum.h"
#include "tile/kernel/cuda/gemm/fragments_to_rows.h"
#include "tile/kernel/cuda/gemm/splitk_reduce.h"
#include "tile/kernel/cuda/operand/fragment.h"
#include "tile/kernel/cuda/operand/load.h"
#include "tile/kernel/cuda/operand/split_tf32_sm90.h"
#include "tile/kernel/cuda/row.h"

namespace heddle::tile::sm90 {

using cuda::cluster_splitk_unit;
using cuda::ClusterSplitKUnit;
using cuda::gemm_reduce;
using cuda::NoEpilogue;

// The default values of a configuration's fields.
struct ClusterSplitKDefaults {
  static constexpr int kClasses = 1;
  static constexpr bool kSwapped = false, kViews = false, kAKMajor = true, kBKMajor = true;
  static constexpr bool kConstantA = false, kConstantB = false, kReadOnceA = false, kReadOnceB = false;
  static constexpr auto kStore = GemmStore::kEpilogue;
};

template <typename Config>
struct ClusterSplitKTraits {
  using In = typename Config::In;
  using Acc = accumulator_t<In>;
  static constexpr int kTileM = Config::kTileM, kTileN = Config::kTileN, kStages = Config::kStages;
  static constexpr int kClusterK = Config::kClusterK, kConsumerThreads = 128 * Config::kConsumers;
  static constexpr int kThreads = kConsumerThreads + (Config::kViews ? 128 : 32);
  static constexpr int kFinishers = Config::kViews ? kThreads : kConsumerThreads;
  static constexpr int kTileK = kGemmRowBytes / sizeof(In);
  static constexpr int kRowsPerGroup = kTileM / Config::kConsumers, kBlocksM = kRowsPerGroup / 64;
  static constexpr int kABytes = gemm_operand_bytes(kTileM, Config::kAKMajor);
  static constexpr int kBBytes = gemm_operand_bytes(kTileN, Config::kBKMajor);
  static constexpr bool kSplit = is_same<In, tf32x2>;  // two tf32 parts per element; the consumers split both operands
  static constexpr int kArrivingBytes = kABytes + kBBytes, kStageBytes = kArrivingBytes + (kSplit ? kBBytes : 0);
  // The number of partial sums per element of D. With few columns, an instruction is bound by its latency. Instructions
  // on different partial sums need not wait for each other.
  static constexpr int kChains = kSplit ? 1 : kBlocksM * kTileN <= 32 ? 4 : kBlocksM * kTileN <= 64 ? 2 : 1;
  // The rows and columns of the tile in D, and the rows of the tile that one block of the cluster finishes.
  static constexpr int kRows = Config::kSwapped ? kTileN : kTileM, kColumns = Config::kSwapped ? kTileM : kTileN;
  static constexpr int kSliceRows = cluster_splitk_slice(kRows, kClusterK);
  static constexpr int kPitch = cluster_splitk_pitch(kColumns, Config::kSwapped);
  static constexpr int kSlice = kSliceRows * kPitch;
  static constexpr int kAddends = kClusterK;
  static constexpr int kClasses = Config::kClasses;
  // The maximum number of neighbouring elements of a row per call of the epilogue such that every thread has work.
  static constexpr int kNeighbours = Config::kSwapped && kClasses > 1                              ? 1
                                     : kColumns % 8 == 0 && kSliceRows* kColumns >= 8 * kFinishers ? 8
                                                                                                   : 4;
  static constexpr int kRingBytes = cluster_splitk_ring_bytes(kTileM, kTileN, Config::kAKMajor, Config::kBKMajor,
                                                              kStages, kClusterK, Config::kSwapped, kSplit);
  static constexpr int kSharedBytes = cluster_splitk_shared_bytes(kTileM, kTileN, Config::kAKMajor, Config::kBKMajor,
                                                                  kStages, kClusterK, Config::kSwapped, kSplit);
  // Two blocks per SM if they fit: one block loads while the other finishes.
  static constexpr int kResident =
      kSharedBytes <= kGemmHalfOfShared && kThreads <= cluster_splitk_half_of_threads(kSplit) ? 2 : 1;
  static_assert(kRowsPerGroup % 64 == 0 && kTileN % 16 == 0 && kTileN <= 256 && kClusterK >= 1 && kClusterK <= 8);
  static_assert((Config::kAKMajor && Config::kBKMajor) || sizeof(In) == 2);
  static_assert(kStages <= 31);
  static_assert(!kSplit || (kBlocksM == 1 && !Config::kViews));
  static_assert(kClasses == 1 || (Config::kAKMajor && Config::kBKMajor && !Config::kViews && !kSplit));
};

template <typename Config>
struct ClusterSplitKShared {
  using Traits = ClusterSplitKTraits<Config>;
  using Acc = typename Traits::Acc;
  uint8_t* ring;  // each stage: a tile of A, then a tile of B
  Acc* sums;      // uses the memory of the ring at the end: [owner][row of its slice][column], pitch kPitch
  Acc* received;  // [sending block][row of the slice][column]
  Barrier* full;
  Barrier* empty;
  Barrier* all_here;  // completes when the sums of the other blocks of the cluster have arrived
  uint64_t* by_fma;   // kSplit: [stage], with a byte per warp: whether the products need FMA

  __device__ explicit ClusterSplitKShared(uint8_t* raw) {
    const uint32_t skew = -shared_address(raw) & 1023;  // the same in every block of the cluster
    ring = raw + skew;
    sums = reinterpret_cast<Acc*>(ring);
    received = Traits::kClusterK == 1 ? sums : reinterpret_cast<Acc*>(ring + Traits::kRingBytes);
    full = reinterpret_cast<Barrier*>(ring + Traits::kRingBytes +
                                      (Traits::kClusterK == 1 ? 0 : Traits::kClusterK * Traits::kSlice * 4));
    empty = full + Traits::kStages;
    all_here = empty + Traits::kStages;
    by_fma = reinterpret_cast<uint64_t*>(all_here + 1);
  }
};

template <int Rows, int TileK, bool KMajor, bool Stream>
__device__ inline void load_part(const TensorMap& map, Barrier& full, uint8_t* to, int32_t row, int32_t k,
                                 int32_t batch) {
  constexpr CacheHint kCacheHint = Stream ? CacheHint::kEvictFirst : CacheHint::kEvictNormal;
  if constexpr (KMajor) {
    load_box(map, full, to, k, row, batch, kCacheHint);
  } else {
#pragma unroll
    for (int strip = 0; strip < (Rows + 63) / 64; ++strip) {
      load_box(map, full, to + strip * TileK * kGemmRowBytes, row + strip * 64, k, batch, kCacheHint);
    }
  }
}

// A source of k-tiles that loads boxes through two tensor maps. place(i) returns the position of this block's k-tile
// number `i` in the operands. advance() moves a position to this block's next k-tile. load() requests the tile of A, of
// B or of both.
template <typename Config>
struct ClusterSplitKBoxes {
  using Traits = ClusterSplitKTraits<Config>;
  using Place = int32_t;
  const TensorMap &map_a, &map_b;
  const ClusterSplitKUnit& unit;
  const ClusterSplitKShared<Config>& shared;

  __device__ Place place(int32_t i) const { return unit.k + i * unit.step; }
  __device__ void advance(Place& at) const { at += unit.step; }
  template <bool WithA, bool WithB>
  __device__ void load(const Place& at, uint32_t stage) const {
    Barrier& full = shared.full[stage];
    uint8_t* to = shared.ring + stage * Traits::kStageBytes;
    const int32_t k = at * Traits::kTileK;
    if constexpr (WithA) {
      load_part<Config::kTileM, Traits::kTileK, Config::kAKMajor, Config::kReadOnceA>(map_a, full, to, unit.row, k,
                                                                                      unit.batch);
    }
    if constexpr (WithB) {
      load_part<Config::kTileN, Traits::kTileK, Config::kBKMajor, Config::kReadOnceB>(
          map_b, full, to + Traits::kABytes, unit.n, k, Traits::kClasses > 1 ? unit.number : unit.batch);
    }
  }
};

template <typename Config>
using ClusterSplitKAccumulators =
    typename ClusterSplitKTraits<Config>::Acc[ClusterSplitKTraits<Config>::kBlocksM][Config::kTileN / 2];

// Zeroes the first `bytes` bytes of each row of A in the first k-tile. These bytes precede the actual row and may have
// any content, even NaN. `rows` is the address of this warpgroup's rows.
template <typename Config>
__device__ inline void clear_front(uint8_t* rows, int32_t bytes, int32_t group) {
  for (int row = threadIdx.x % 128; row < ClusterSplitKTraits<Config>::kRowsPerGroup; row += 128) {
    auto* piece =
        reinterpret_cast<cuda::Neighbours<uint32_t, 4>*>(rows + row * kGemmRowBytes + row % 8 * 16);  // swizzled
    auto words = *piece;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int front = bytes - 4 * i;
      words.x[i] = front >= 4 ? 0 : front <= 0 ? words.x[i] : words.x[i] & ~((1u << (8 * front)) - 1);
    }
    *piece = words;
  }
  fence_async_shared();
  if (group == 0) {
    named_barrier_sync<1>(128);
  } else {
    named_barrier_sync<2>(128);
  }
}

// Multiplies all `count` k-tiles of this block. A stage is released only if a later load needs it. `front` is the
// number of bytes that precede each row of A in the first k-tile.
template <typename Config>
__device__ inline void cluster_splitk_multiply(
    ClusterSplitKAccumulators<Config> (&acc)[ClusterSplitKTraits<Config>::kChains],
    const ClusterSplitKShared<Config>& shared, int32_t count, int32_t group, int32_t front) {
  using Traits = ClusterSplitKTraits<Config>;
  using Instruction = Wgmma<typename Config::In, Config::kTileN>;
  constexpr int kChains = Traits::kChains;
  constexpr uint32_t kStrip = Traits::kTileK * kGemmRowBytes;
  constexpr uint64_t kStepA = (Config::kAKMajor ? 32 : 16 * kGemmRowBytes) >> 4;
  constexpr uint64_t kStepB = (Config::kBKMajor ? 32 : 16 * kGemmRowBytes) >> 4;
  constexpr uint64_t kStepM = (64 * kGemmRowBytes) >> 4;  // 64 rows: eight groups of eight rows, or one strip
  const uint32_t ring = shared_address(shared.ring), row = group * Traits::kRowsPerGroup * kGemmRowBytes;
  uint32_t stage = 0, phase = 0, before = 0;
#pragma unroll 1
  for (int32_t i = 0; i < count; ++i) {
    shared.full[stage].wait(phase);
    if constexpr (Config::kViews) fence_async_shared();
    if constexpr (Traits::kClasses > 1) {
      if (i == 0 && front > 0) clear_front<Config>(shared.ring + row, front, group);
    }
    wgmma_fence();
    const uint32_t at = ring + stage * Traits::kStageBytes;
    const uint64_t of_a = make_smem_descriptor(at + row, Config::kAKMajor, kStrip);
    const uint64_t of_b = make_smem_descriptor(at + Traits::kABytes, Config::kBKMajor, kStrip);
#pragma unroll
    for (int step = 0; step < 4; ++step) {
#pragma unroll
      for (int block = 0; block < Traits::kBlocksM; ++block) {
        Instruction::template issue<!Config::kAKMajor, !Config::kBKMajor>(
            acc[step % kChains][block], of_a + step * kStepA + block * kStepM, of_b + step * kStepB,
            i != 0 || step >= kChains);
      }
    }
    wgmma_commit();
    if (i > 0) {
      wgmma_wait<1>();
      if (i - 1 + Traits::kStages < count && threadIdx.x % 128 == 0) shared.empty[before].arrive();
    }
    before = stage;
    if (++stage == Traits::kStages) {
      stage = 0;
      phase ^= 1;
    }
  }
  wgmma_wait<0>();
#pragma unroll
  for (int chain = 0; chain < kChains; ++chain) {
#pragma unroll
    for (int block = 0; block < Traits::kBlocksM; ++block) {
#pragma unroll
      for (int i = 0; i < Config::kTileN / 2; ++i) {
        fence_operand(acc[chain][block][i]);
        if (chain > 0) acc[0][block][i] += acc[chain][block][i];
      }
    }
  }
}

// Does the same as cluster_splitk_multiply() for f32 operands in two tf32 parts. While a k-tile is multiplied, the next
// k-tile of B is split.
template <typename Config>
__device__ inline void cluster_splitk_multiply_split(float (&acc)[Config::kTileN / 2],
                                                     const ClusterSplitKShared<Config>& shared, int32_t count,
                                                     int32_t group) {
  using Traits = ClusterSplitKTraits<Config>;
  constexpr int kTileN = Config::kTileN, kChains = kTileN <= 32 ? 3 : 1, kWarps = 4 * Config::kConsumers;
  constexpr int kTaken = 1;  // named barrier: B has been split
  const uint32_t warp = threadIdx.x / 32 % kWarps, lane = threadIdx.x % 32;
  const uint32_t first = group * 64 + warp % 4 * 16;
  SplitRows a(first);
  uint32_t stage = 0, phase = 0;
  const auto prepare = [&] {
    shared.full[stage].wait(phase);
    uint8_t* tile = shared.ring + stage * Traits::kStageBytes;
    a.read(tile);
    uint8_t* high = tile + Traits::kABytes;
    const bool by_fma = split_tile<Traits::kBBytes, Traits::kConsumerThreads>(high, high + Traits::kBBytes);
    if (lane == 0) reinterpret_cast<uint8_t*>(shared.by_fma + stage)[warp] = by_fma;
  };
#pragma unroll
  for (int i = 0; i < kTileN / 2; ++i) acc[i] = 0;
  if (count > 0) prepare();
#pragma unroll 1
  for (int32_t i = 0; i < count; ++i) {
    const float most = a.largest();
    a.take_apart();
    named_barrier_sync<kTaken>(Traits::kConsumerThreads);
    const uint8_t* tile = shared.ring + stage * Traits::kStageBytes;
    const uint8_t* high = tile + Traits::kABytes;
    float sums[kChains][kTileN / 2];
    wgmma_fence();
    a.multiply<kTileN>(sums, shared_address(high), shared_address(high + Traits::kBBytes));
    wgmma_commit();
    const uint32_t read = stage;
    const uint64_t of_b = shared.by_fma[read];
    const bool by_fma = (kWarps == 4 ? static_cast<uint32_t>(of_b) : of_b) != 0 || cuda::leaves_range(most);
    if (++stage == Traits::kStages) {
      stage = 0;
      phase ^= 1;
    }
    if (i + 1 < count) prepare();
    wgmma_wait<0>();
    a.release();
    if (__builtin_expect(by_fma, 0)) {
      multiply_tile_by_fma<kTileN>(acc, tile + first * kGemmRowBytes, high, high + Traits::kBBytes);
    } else {
      add_sums(acc, sums);
    }
    __syncwarp();
    if (i + Traits::kStages < count && lane == 0) shared.empty[read].arrive();
  }
}

// Writes the sums of the tile to shared memory as rows of D.
template <typename Config>
__device__ inline void cluster_splitk_lay(const ClusterSplitKAccumulators<Config>& acc,
                                          const ClusterSplitKShared<Config>& shared, int32_t group) {
  using Traits = ClusterSplitKTraits<Config>;
  using Acc = typename Traits::Acc;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
#pragma unroll
  for (int block = 0; block < Traits::kBlocksM; ++block) {
    const int m = group * Traits::kRowsPerGroup + block * 64 + warp * 16 + lane / 4, n = 2 * (lane % 4);
#pragma unroll
    for (int j = 0; j < Config::kTileN / 8; ++j) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const Acc x = acc[block][4 * j + 2 * h], y = acc[block][4 * j + 2 * h + 1];
        if constexpr (Config::kSwapped) {
          Acc* to = shared.sums + (8 * j + n) * Traits::kPitch + m + 8 * h;
          to[0] = x;
          to[Traits::kPitch] = y;
        } else {
          Acc* to = shared.sums + (m + 8 * h) * Traits::kPitch + 8 * j + n;
          *reinterpret_cast<cuda::Neighbours<Acc, 2>*>(to) = {{x, y}};
        }
      }
    }
  }
}

// The part of the kernel after the loads: multiplies, exchanges sums with the cluster, and finishes this block's rows.
// `group` is the index of this warpgroup among the consumers.
template <typename Config, typename Epilogue>
__device__ inline void cluster_splitk_rest(const ClusterSplitKArgs& args, const Epilogue& epilogue,
                                           const ClusterSplitKShared<Config>& shared, const ClusterSplitKUnit& unit,
                                           int32_t rank, int32_t group) {
  using Traits = ClusterSplitKTraits<Config>;
  constexpr int kClusterK = Traits::kClusterK;
  ClusterSplitKAccumulators<Config> acc[Traits::kChains];
  const bool multiplies = group >= 0 && group < Config::kConsumers;
  int32_t front = 0;
  if constexpr (Traits::kClasses > 1) {
    if (unit.k == 0) front = static_cast<int32_t>(gemm_class_skip(args.skip, unit.number, args.skip_step));
  }
  if constexpr (Traits::kSplit) {
    if (multiplies) cluster_splitk_multiply_split<Config>(acc[0][0], shared, unit.count, group);
  } else {
    if (multiplies) cluster_splitk_multiply<Config>(acc, shared, unit.count, group, front);
  }
  __syncthreads();  // the ring is no longer used
  if (multiplies) cluster_splitk_lay<Config>(acc[0], shared, group);
  if constexpr (kClusterK > 1) {
    cuda::cluster_splitk_exchange<Config, Traits>(shared.sums, shared.received, *shared.all_here, rank);
  } else {
    __syncthreads();
  }
  if (threadIdx.x < Traits::kFinishers) {
    const auto* own = shared.sums + rank * Traits::kSlice;
    cuda::cluster_splitk_finish<Config, Traits>(args, epilogue, shared.received, own, unit, rank);
  }
  if constexpr (kClusterK > 1) cluster_wait();  // until the other blocks have received this block's sums
}

// Returns the map of A that this block reads: the map of its class of rows.
template <typename Config, typename... Maps>
__device__ inline const TensorMap& map_of_class(const TensorMap& first, const Maps&... others) {
  const auto number = static_cast<int>(blockIdx.x / Config::kClusterK % Config::kClasses);
  const TensorMap* map = &first;
  int i = 0;
  ((map = ++i == number ? &others : map), ...);
  return *map;
}

// The whole kernel, for any source of operands; see ClusterSplitKBoxes for `source`.
template <typename Config, typename Source, typename Epilogue>
__device__ inline void gemm_cluster_splitk_from(const Source& source, const ClusterSplitKArgs& args,
                                                const Epilogue& epilogue, const ClusterSplitKShared<Config>& shared,
                                                const ClusterSplitKUnit& unit, int32_t rank) {
  using Traits = ClusterSplitKTraits<Config>;
  constexpr int kClusterK = Traits::kClusterK, kStages = Traits::kStages, kWarps = Traits::kThreads / 32;
  const auto warp = static_cast<int32_t>(threadIdx.x) / 32, lane = static_cast<int32_t>(threadIdx.x) % 32;
  launch_dependents();
  if (lane == 0) {
    if (warp == 0) prefetch(source.map_a);
    if (warp == 1) prefetch(source.map_b);
    for (int32_t i = warp; i < kStages && i < unit.count; i += kWarps) {
      shared.full[i].init(1);
      if (unit.count > kStages) shared.empty[i].init(Config::kConsumers * (Traits::kSplit ? 4 : 1));
      fence_barrier_init();
      shared.full[i].arrive_expect(Traits::kArrivingBytes);
      source.template load<Config::kConstantA, Config::kConstantB>(source.place(i), i);
    }
    if (kClusterK > 1 && warp == kWarps - 1) {
      shared.all_here->init(1);
      fence_barrier_init();
      shared.all_here->arrive_expect(cuda::parts_bytes<Config, Traits>);
    }
  }
  grid_dependency_wait();
  if (lane == 0) {
    for (int32_t i = warp; i < kStages && i < unit.count; i += kWarps) {
      source.template load<!Config::kConstantA, !Config::kConstantB>(source.place(i), i);
    }
  }
  __syncthreads();
  if constexpr (kClusterK > 1) cluster_arrive();
  if (warp == kWarps - 1) {
    if (lane == 0) {
      uint32_t stage = 0, phase = 0;
      auto at = source.place(kStages);
      for (int32_t i = kStages; i < unit.count; ++i, source.advance(at)) {
        shared.empty[stage].wait(phase);
        shared.full[stage].arrive_expect(Traits::kArrivingBytes);
        source.template load<true, true>(at, stage);
        if (++stage == kStages) {
          stage = 0;
          phase ^= 1;
        }
      }
    }
    __syncwarp();
  }
  cluster_splitk_rest<Config>(args, epilogue, shared, unit, rank, warp / 4);
}

// The kernel with tensor maps. It is launched with ClusterSplitKTraits<Config>::kThreads threads, kSharedBytes of
// dynamic shared memory, and clusters of kClusterK blocks along x. Grid: x = tiles along m times kClusterK; y = tiles
// along n; z = batches times the parts of k beyond the cluster.
template <typename Config, typename Epilogue>
__device__ inline void gemm_cluster_splitk(const TensorMap& map_a, const TensorMap& map_b,
                                           const ClusterSplitKArgs& args, const Epilogue& epilogue) {
  extern __shared__ uint8_t raw_shared[];
  const ClusterSplitKShared<Config> shared(raw_shared);
  const auto rank = static_cast<int32_t>(blockIdx.x % Config::kClusterK);
  const ClusterSplitKUnit unit = cluster_splitk_unit<Config, ClusterSplitKTraits<Config>, true>(args, rank);
  const ClusterSplitKBoxes<Config> source{map_a, map_b, unit, shared};
  gemm_cluster_splitk_from<Config>(source, args, epilogue, shared, unit, rank);
}

// The kernel with views. 128 threads load the operands through views (load.h) by cp.async, so that no tensor map has to
// be fetched first.
template <typename Config, typename A, typename B, typename Epilogue>
__device__ inline void gemm_cluster_splitk_views(const ClusterSplitKArgs& args, const A& operand_a, const B& operand_b,
                                                 const Epilogue& epilogue) {
  using Traits = ClusterSplitKTraits<Config>;
  using In = typename Config::In;
  constexpr int kClusterK = Traits::kClusterK, kStages = Traits::kStages, kLoaders = 128;
  constexpr int kBegun = 3;  // named barrier: the other barriers are initialised
  using LoaderA = cuda::TileLoader<A, In, sm80::SwizzledTile<In, Config::kTileM, Traits::kTileK, Config::kAKMajor>,
                                   Config::kTileM, Traits::kTileK, kLoaders>;
  using LoaderB = cuda::TileLoader<B, In, sm80::SwizzledTile<In, Config::kTileN, Traits::kTileK, Config::kBKMajor>,
                                   Config::kTileN, Traits::kTileK, kLoaders>;
  static_assert(LoaderA::kAsync && LoaderB::kAsync);
  extern __shared__ uint8_t raw_shared[];
  const ClusterSplitKShared<Config> shared(raw_shared);
  const auto warp = static_cast<int32_t>(threadIdx.x) / 32, lane = static_cast<int32_t>(threadIdx.x) % 32;
  const auto rank = static_cast<int32_t>(blockIdx.x % kClusterK);
  const ClusterSplitKUnit unit = cluster_splitk_unit<Config, Traits, false>(args, rank);
  const bool loader = threadIdx.x < kLoaders;
  launch_dependents();
  grid_dependency_wait();
  const auto load = [&](LoaderA& a, LoaderB& b, uint32_t stage) {
    const uint32_t at = shared_address(shared.ring) + stage * Traits::kStageBytes;
    a.copy(at);
    b.copy(at + Traits::kABytes);
    a.next();
    b.next();
  };
  if (!loader) {
    for (int32_t i = warp - 4; lane == 0 && i < kStages && i < unit.count; i += 4 * Config::kConsumers) {
      shared.full[i].init(kLoaders);
      if (unit.count > kStages) shared.empty[i].init(Config::kConsumers);
    }
    if (kClusterK > 1 && warp == 4 && lane == 0) {
      shared.all_here->init(1);
      shared.all_here->arrive_expect(cuda::parts_bytes<Config, Traits>);
    }
    fence_barrier_init();
    named_barrier_sync<kBegun>(Traits::kThreads);
    if constexpr (kClusterK > 1) cluster_arrive();
  } else {
    LoaderA a(operand_a, unit.batch, unit.m, unit.k * Traits::kTileK);
    LoaderB b(operand_b, unit.batch, unit.n, unit.k * Traits::kTileK);
    load(a, b, 0);
    named_barrier_sync<kBegun>(Traits::kThreads);
    if constexpr (kClusterK > 1) cluster_arrive();
    shared.full[0].arrive_behind_copies();
    uint32_t stage = 1 % kStages, phase = 1;
#pragma unroll 1
    for (int32_t i = 1; i < unit.count; ++i) {
      if (i >= kStages) shared.empty[stage].wait(phase);
      load(a, b, stage);
      shared.full[stage].arrive_behind_copies();
      if (++stage == kStages) {
        stage = 0;
        phase ^= 1;
      }
    }
  }
  cluster_splitk_rest<Config>(args, epilogue, shared, unit, rank, warp / 4 - 1);
}

}  // namespace heddle::tile::sm90
