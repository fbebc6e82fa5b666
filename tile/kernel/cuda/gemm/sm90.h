// D = epilogue(A B) on sm_90a. One warpgroup feeds a ring of tiles in shared memory through TMA, and one or two
// warpgroups multiply. Blocks are persistent and walk over the tiles.
//
// A generated unit gives a configuration with named fields,
//
//   struct Config {
//     using In = tile::half;                      // half, bfloat; along k only tf32, tf32x2, e4m3, e5m2, int8_t
//     using Out = tile::half;                     // half, bfloat, float, int32_t
//     static constexpr int kTileM = 128, kTileN = 256, kStages = 4;
//     static constexpr int kConsumers = 2;        // warpgroups that multiply
//     static constexpr bool kPingPong = false;    // each has its own tile; else they share a tile by rows
//     static constexpr int kClusterM = 2, kClusterN = 1;
//     static constexpr bool kAKMajor = true, kBKMajor = true;
//     static constexpr bool kSwapped = false;     // the kernel computes the transpose of D
//     static constexpr bool kStream = false;      // stream-K: without clusters, ping-pong and kPartial
//     static constexpr bool kConstantA = false, kConstantB = true;  // no launch writes it: the first tiles are loaded
//                                                                   // while the preceding kernel still runs
//     static constexpr bool kWholeColumns = true; // the columns of D are known to be a multiple of kTileN
//     static constexpr bool kStreamA = false, kStreamB = false;  // read once, evicted first from the L2
//     static constexpr bool kResidual = false;        // TMA loads the matrix of 16-bit elements that the
//                                                 // epilogue reads beside D; kTma, not swapped
//     static constexpr bool kGated = false;           // the epilogue combines pairs of sums (fragments_to_rows.h);
//                                                     // not swapped
//     static constexpr auto kStore = tile::GemmStore::kTma;
//   };
//
// and an epilogue, called for every W neighbours of a row of D: v[0..n) are columns col .. col + n - 1. With
// GemmStore::kTma and kRows it returns the values of D in v; else it stores D itself, and Out is not used.
//
//   struct Epilogue {
//     template <typename T, int W>
//     __device__ void operator()(T (&v)[W], int batch, int row, int col, int n) const;
//   };
//
// It may also reduce neighbours of a row or column (reduce_fragments.h), unless operands are swapped or kPartial is
// used.
#pragma once

#include "tile/arch/sm90/barrier.h"
#include "tile/arch/sm90/convert.h"
#include "tile/arch/sm90/dependent.h"
#include "tile/arch/sm90/tma.h"
#include "tile/arch/sm90/wgmma.h"
#include "tile/core/cuda_gemm.h"
#include "tile/kernel/cuda/gemm/reduce_fragments.h"
#include "tile/kernel/cuda/gemm/sm90_3xtf32.h"
#include "tile/kernel/cuda/gemm/sm90_fixup.h"
#include "tile/kernel/cuda/gemm/sm90_residual.h"
#include "tile/kernel/cuda/gemm/sm90_shared.h"
#include "tile/kernel/cuda/gemm/splitk_reduce.h"
#include "tile/kernel/cuda/gemm/store.h"
#include "tile/kernel/cuda/gemm/store_rows.h"
#include "tile/kernel/cuda/gemm/tile_scheduler.h"

namespace heddle::tile::sm90 {

using cuda::gemm_reduce;

inline constexpr int kBarriersMade = 1;           // id of the block's named barrier: barriers are initialised
inline constexpr uint32_t kBarrierInitWarp = 1;   // the warp that initialises barriers
inline constexpr uint32_t kBiasPrefetchWarp = 2;  // the warp that prefetches vectors
inline constexpr uint32_t kResidualWarp = 3;      // the warp that loads the residual matrix

// Loads this block's share of one operand's tile: 1 / Shares of it, multicast to every block of the cluster.
template <int Rows, int TileK, bool KMajor, int Shares, CacheHint kCacheHint = CacheHint::kEvictNormal>
__device__ inline void load_operand(const TensorMap& map, Barrier& full, uint8_t* to, int32_t row, int32_t k,
                                    int32_t batch, int32_t rank) {
  const auto load = [&](uint8_t* at, int32_t inner, int32_t outer) {
    if constexpr (Shares == 1) {
      load_box(map, full, at, inner, outer, batch, kCacheHint);
    } else {
      load_box_multicast(map, full, at, inner, outer, batch, (1 << Shares) - 1, kCacheHint);
    }
  };
  if constexpr (KMajor) {
    constexpr int kRows = Rows / Shares;
    static_assert(kRows % 4 == 0);  // the swizzle depends on the address
    const int32_t first = Shares == 1 ? 0 : rank * kRows;
    load(to + first * kGemmRowBytes, k, row + first);
  } else {
    constexpr int kDepth = TileK / Shares;
    const int32_t first = Shares == 1 ? 0 : rank * kDepth;
#pragma unroll
    for (int strip = 0; strip < (Rows + 63) / 64; ++strip) {
      load(to + (strip * TileK + first) * kGemmRowBytes, row + strip * 64, k + first);
    }
  }
}

// Waits until the barriers of all blocks of the cluster are initialised. Other threads may only arrive.
template <typename Config>
__device__ inline void wait_for_barriers() {
  if constexpr (GemmTraits<Config>::kCluster > 1) {
    cluster_wait();
  } else {
    named_barrier_sync<kBarriersMade>(GemmTraits<Config>::kThreads);
  }
}

// The L2 eviction priority of an operand.
constexpr CacheHint cache_hint_of(bool streams) {
  return streams ? CacheHint::kEvictFirst : CacheHint::kEvictNormal;
}

// Prefetches rows that the epilogue will read beside D into the L2, tile after tile at the pace of the loads. Run by
// the idle warps of the loading warpgroup.
template <typename Config, typename Epilogue>
__device__ inline void prefetch_rows(const Epilogue& epilogue, const GemmArgs& args, const GemmShared<Config>& shared) {
  constexpr int32_t kRows = Config::kSwapped ? Config::kTileN : Config::kTileM;
  constexpr int32_t kColumns = Config::kSwapped ? Config::kTileM : Config::kTileN;
  constexpr int32_t kThreads = 96;
  const int32_t rows = Config::kSwapped ? args.n : args.m, columns = Config::kSwapped ? args.m : args.n;
  PipelineState<Config::kStages> at;
  for (PersistentTileScheduler<Config> walk(args); walk.valid(); walk.next()) {
    const GemmUnit unit = walk.get();
    shared.empty[at.stage].wait_briefly(at.phase ^ 1);
    at.skip(unit.k.last - unit.k.first);
    const int32_t row = Config::kSwapped ? unit.n : unit.m, col = Config::kSwapped ? unit.m : unit.n;
    const int32_t some = columns - col < kColumns ? columns - col : kColumns;
    for (int32_t r = row + static_cast<int32_t>(threadIdx.x) - 32; r < row + kRows && r < rows; r += kThreads) {
      epilogue.matrices([&](const auto* from) { prefetch_global(from, static_cast<uint32_t>(some) * sizeof(*from)); },
                        unit.batch, r, col);
    }
  }
}

// Reads a byte of every 32 of the vectors that the epilogue will read. This brings them into the L1, which the traffic
// of TMA bypasses. One idle warp does this early: memory is busy filling the ring, and the consumers would stall on
// these loads.
template <typename Config, typename Epilogue>
__device__ inline void touch_vectors(const Epilogue& epilogue, const GemmArgs& args) {
  constexpr uint32_t kColumns = Config::kSwapped ? Config::kTileM : Config::kTileN;
  const int32_t columns = Config::kSwapped ? args.m : args.n;
  uint32_t read = 0;
  for (PersistentTileScheduler<Config> walk(args); walk.valid(); walk.next()) {
    const GemmUnit unit = walk.get();
    const int32_t row = Config::kSwapped ? unit.n : unit.m, col = Config::kSwapped ? unit.m : unit.n;
    epilogue.vectors(
        [&](const auto* from) {
          const uint32_t at = threadIdx.x % 32 * (32 / sizeof(*from));
          const bool inside = at < kColumns && col + static_cast<int32_t>(at) < columns;
          if (inside) read ^= *reinterpret_cast<const uint8_t*>(from + at);
        },
        unit.batch, row, col);
  }
  in_use(read);
}

// Where an operand's tile begins in its map: heads within rows are an offset along them; an operand that serves all
// batches has batch 0.
struct OperandPlace {
  int32_t row, k, batch;
};
template <bool KMajor>
__device__ inline OperandPlace place_of(const GemmUnit& unit, int32_t row, int32_t outer, int32_t head, int32_t step) {
  if (step == 0) return {row, 0, unit.batch};
  if (step == kGemmOneForAll) return {row, 0, 0};
  return {KMajor ? row : row + head * step, KMajor ? head * step : 0, outer};
}

// Loads the constant operands of the first k-tiles, at most the ring's stages, then waits for the preceding kernel.
// Returns their number: the caller loads the other operand for the same stages without waiting for free ones.
template <typename Config, typename Load>
__device__ inline int32_t load_constants(const GemmShared<Config>& shared, int32_t k_tiles, const Load& load) {
  using Traits = GemmTraits<Config>;
  int32_t begun = 0;
  if constexpr (Config::kConstantA || Config::kConstantB) {
    begun = k_tiles < Traits::kStages ? k_tiles : Traits::kStages;
#pragma unroll 1
    for (int32_t i = 0; i < begun; ++i) {
      shared.full[i].arrive_expect(Traits::kABytes + Traits::kBBytes);
      load(i);
    }
  }
  grid_dependency_wait();
  return begun;
}

template <bool Value>
struct Is {
  static constexpr bool value = Value;
};

// One thread fills the ring, from the walk's first unit on. Returns the ring position after the last stage.
template <typename Config>
__device__ inline PipelineState<Config::kStages> gemm_produce(const TensorMap& map_a, const TensorMap& map_b,
                                                              const GemmShared<Config>& shared,
                                                              PersistentTileScheduler<Config>& walk, GemmUnit unit) {
  using Traits = GemmTraits<Config>;
  const GemmArgs& args = walk.args;
  // Loads k-tile k of the unit into a stage: only the operands whose constness equals `constants`.
  const auto load = [&](auto constants, const OperandPlace& a, const OperandPlace& b, int32_t k, uint32_t stage) {
    if constexpr (Config::kConstantA == decltype(constants)::value) {
      load_operand<Config::kTileM, Traits::kTileK, Config::kAKMajor, Config::kClusterN,
                   cache_hint_of(Config::kStreamA)>(map_a, shared.full[stage], shared.a + stage * Traits::kABytes,
                                                    a.row, a.k + k * Traits::kTileK, a.batch, walk.rank);
    }
    if constexpr (Config::kConstantB == decltype(constants)::value) {
      load_operand<Config::kTileN, Traits::kTileK, Config::kBKMajor, Config::kClusterM,
                   cache_hint_of(Config::kStreamB)>(map_b, shared.full[stage], shared.b + stage * Traits::kBBytes,
                                                    b.row, b.k + k * Traits::kTileK, b.batch, walk.rank);
    }
  };
  PipelineState<Traits::kStages> at;
  bool first = true;
  while (true) {
    const int32_t outer = args.by_heads.divide(unit.batch), head = unit.batch - outer * args.heads;
    const OperandPlace a = place_of<Config::kAKMajor>(unit, unit.m, outer, head, args.a_step);
    const OperandPlace b = place_of<Config::kBKMajor>(unit, unit.n, outer, head, args.b_step);
    int32_t k = unit.k.first;
    if (first) {
      const int32_t begun = load_constants<Config>(shared, unit.k.last - unit.k.first, [&](int32_t i) {
        load(Is<true>{}, a, b, unit.k.first + i, static_cast<uint32_t>(i));
      });
#pragma unroll 1
      for (int32_t i = 0; i < begun; ++i, ++k) load(Is<false>{}, a, b, k, static_cast<uint32_t>(i));
      at.skip(begun);
      first = false;
    }
    for (; k < unit.k.last; ++k, at.step()) {
      shared.empty[at.stage].wait(at.phase ^ 1);
      shared.full[at.stage].arrive_expect(Traits::kABytes + Traits::kBBytes);
      load(Is<true>{}, a, b, k, at.stage);
      load(Is<false>{}, a, b, k, at.stage);
    }
    walk.next();
    if (!walk.valid()) return at;
    unit = walk.get();
  }
}

// Initialises the accumulators of a warpgroup.
template <typename Config, typename Epilogue>
__device__ inline void init_accumulators(GemmAccumulators<Config>& acc, const Epilogue& epilogue, const GemmArgs& args,
                                         const GemmUnit& unit) {
#pragma unroll
  for (int j = 0; j < Config::kTileN / 8; ++j) {
    float v[2] = {0, 0};  // sums of a later part of k begin with zero
    const int32_t column = unit.n + 8 * j + 2 * static_cast<int32_t>(threadIdx.x % 4);
    const bool inside = Config::kWholeColumns || column < args.n;
    if (!Config::kStream || unit.k.first == 0)
      epilogue.accumulator_init(v, unit.batch, 0, inside ? column : args.n - 2, 2);
#pragma unroll
    for (int block = 0; block < GemmTraits<Config>::kBlocksM; ++block) {
#pragma unroll
      for (int i = 0; i < 4; ++i) acc[block][4 * j + i] = v[i % 2];
    }
  }
}

// `first`: the accumulators are not initialised.
template <typename Config>
__device__ inline void multiply_stage(GemmAccumulators<Config>& acc, uint32_t a, uint32_t b, bool first) {
  using Traits = GemmTraits<Config>;
  using Instruction = Wgmma<typename Config::In, Config::kTileN>;
  // Four instructions of 32 bytes of k each. A step advances 32 bytes in a row, or 16 rows of k in a strip.
  constexpr uint64_t kStepA = (Config::kAKMajor ? 32 : 16 * kGemmRowBytes) >> 4;
  constexpr uint64_t kStepB = (Config::kBKMajor ? 32 : 16 * kGemmRowBytes) >> 4;
  const uint64_t of_a = make_smem_descriptor(a, Config::kAKMajor, Traits::kStripBytes);
  const uint64_t of_b = make_smem_descriptor(b, Config::kBKMajor, Traits::kStripBytes);
#pragma unroll
  for (int step = 0; step < 4; ++step) {
#pragma unroll
    for (int block = 0; block < Traits::kBlocksM; ++block) {
      Instruction::template issue<!Config::kAKMajor, !Config::kBKMajor>(
          acc[block], of_a + step * kStepA + block * ((64 * kGemmRowBytes) >> 4), of_b + step * kStepB,
          !first || step != 0);
    }
  }
}

template <typename Config>
__device__ inline void pin_all(GemmAccumulators<Config>& acc) {
#pragma unroll
  for (int block = 0; block < GemmTraits<Config>::kBlocksM; ++block) {
#pragma unroll
    for (int i = 0; i < Config::kTileN / 2; ++i) fence_operand(acc[block][i]);
  }
}

// Frees a stage in every block of the cluster, after the whole warpgroup has read it.
template <typename Config>
__device__ inline void release_stage(Barrier& empty) {
  constexpr int kCluster = GemmTraits<Config>::kCluster;
  const uint32_t thread = threadIdx.x % 128;
  if constexpr (kCluster == 1) {
    if (thread == 0) empty.arrive();
  } else {
    if (thread % 32 == 0 && thread / 32 < kCluster) empty.arrive_at(thread / 32);
  }
}

// `empty`: the accumulators are not initialised.
template <typename Config>
__device__ inline void gemm_multiply(GemmAccumulators<Config>& acc, const GemmShared<Config>& shared, int32_t k_tiles,
                                     uint32_t row, PipelineState<Config::kStages>& at, int32_t group, bool empty) {
  using Traits = GemmTraits<Config>;
  const uint32_t a = shared_address(shared.a) + row * kGemmRowBytes, b = shared_address(shared.b);
  uint32_t before = at.stage;
  // There is at least one k-tile, and the body has no copies and no wait in a branch. Otherwise ptxas sees other
  // instructions than wgmma use the accumulators of some instances, and serialises the wgmmas.
  int32_t k = 0;
#pragma unroll 1
  do {
    shared.full[at.stage].wait(at.phase);
    wgmma_fence();
    multiply_stage<Config>(acc, a + at.stage * Traits::kABytes, b + at.stage * Traits::kBBytes, empty && k == 0);
    wgmma_commit();
    wgmma_wait<1>();  // the previous stage has been read
    if (k > 0) release_stage<Config>(shared.empty[before]);
    before = at.stage;
    at.step();
  } while (++k < k_tiles);
  if (Config::kPingPong && threadIdx.x % 32 == 0) shared.turn[1 - group].arrive();
  wgmma_wait<0>();
  pin_all<Config>(acc);
  release_stage<Config>(shared.empty[before]);
}

// Stores one warp's 16 rows of the kernel's own D, from `row`, if they are not stored as whole pieces.
template <typename Config, typename Epilogue>
__device__ inline void store_block(const typename GemmTraits<Config>::Acc (&acc)[Config::kTileN / 2],
                                   const Epilogue& epilogue, const GemmArgs& args, const TensorMap& map_d,
                                   uint8_t* staging, uint32_t& turn, const GemmUnit& unit, int32_t row) {
  using Out = typename Config::Out;
  constexpr int N = Config::kTileN, kPair = cuda::kColumnsOfPair<Epilogue>;
  const int32_t col = unit.n / kPair;
  if constexpr (Config::kStore == GemmStore::kPartial) {
    auto* to = static_cast<typename GemmTraits<Config>::Acc*>(args.partial) + unit.split * args.p_split;
    store_partial<Config::kSwapped, N>(acc, args, to + unit.batch * args.p_batch, row, unit.n);
  } else if constexpr (Config::kStore == GemmStore::kEpilogue) {
    store_epilogue<Config::kSwapped, N / kPair>(acc, epilogue, args, staging, unit.batch, row, col);
  } else if constexpr (Config::kStore == GemmStore::kRows) {
    store_any_rows<Config::kSwapped, N / kPair, Out>(acc, epilogue, args, staging, unit.batch, row, col);
  } else {
    store_columns<N, Out>(acc, epilogue, args, map_d, staging, turn, unit.batch, row, unit.n);
  }
}

// Stores one warp's rows of a tile, from `row` on. `pieces`: the pieces to store, if rows are stored as whole pieces.
template <typename Config, typename Epilogue, typename Brought>
__device__ inline void store_tile(GemmAccumulators<Config>& acc, const Epilogue& epilogue, const GemmArgs& args,
                                  const TensorMap& map_d, uint8_t* staging, uint32_t& turn, const GemmUnit& unit,
                                  int32_t row, const PieceRange& pieces, Brought& brought) {
  constexpr int kBlocks = GemmTraits<Config>::kBlocksM;
  static_assert(Config::kStore == GemmStore::kPartial || cuda::Gates<Epilogue>::value == Config::kGated);
  if constexpr (cuda::Reduces<Epilogue>::value) {
    static_assert(Config::kStore != GemmStore::kPartial && !Config::kSwapped);
#pragma unroll
    for (int block = 0; block < kBlocks; ++block) {
      const auto sums = [&](int j, int h, int i) -> auto& {
        return acc[block][4 * j + 2 * h + i];
      };
      cuda::reduce_fragments<Config::kTileN>(sums, epilogue, args, unit.batch, row + block * 64, unit.n);
    }
    if (!cuda::Reduces<Epilogue>::stores) return;
  }
  if constexpr (Config::kStore == GemmStore::kTma && !Config::kSwapped) {
    store_rows<kBlocks, Config::kTileN, typename Config::Out, Config::kWholeColumns>(
        acc, epilogue, args, map_d, staging, unit.batch, row, unit.n / cuda::kColumnsOfPair<Epilogue>, pieces, brought);
  } else {
#pragma unroll
    for (int block = 0; block < kBlocks; ++block) {
      store_block<Config>(acc[block], epilogue, args, map_d, staging, turn, unit, row + block * 64);
    }
  }
}

// One warpgroup multiplies and stores its tiles. `group`: its index among the consumers. It waits for the barriers
// unless they are `Made`.
template <typename Config, bool Made = false, typename Epilogue>
__device__ inline void gemm_consume(const TensorMap& map_d, const GemmArgs& args, const Epilogue& epilogue,
                                    const GemmShared<Config>& shared, int32_t group,
                                    [[maybe_unused]] const TensorMap* residual = nullptr) {
  using Traits = GemmTraits<Config>;
  const int32_t warp = warp_of_block() % 4, first_row = Config::kPingPong ? 0 : group * Traits::kRowsPerGroup;
  uint8_t* staging = shared.staging + (group * 4 + warp) * Traits::kStagingBytes;
  ResidualPipeline<Config, Traits::kResidual> brought(residual, shared);
  uint32_t turn = 0;
  PipelineState<Traits::kStages> at;
  int32_t number = 0;
  constexpr bool kInitsAccumulator = kInitsAccumulators<Config, Epilogue, typename Traits::Acc>;
  constexpr bool kShares = kSharesLast<Config, Epilogue>;
  // Initial values are requested as early as possible, because memory is later busy with the tiles of the whole ring.
  // But if the loading thread waits for this warpgroup too, the barriers come first.
  bool begun = !kInitsAccumulator || Traits::kCluster == 1;
  if (begun && !Made) wait_for_barriers<Config>();
  grid_dependency_wait();
  for (PersistentTileScheduler<Config> walk(args); walk.valid(); walk.next(), ++number) {
    const GemmUnit unit = walk.get();
    const bool mine = !Config::kPingPong || number % 2 == group;
    // If all stages have been filled since the other warpgroup's last tile, that warpgroup has finished reading them.
    const bool halved = kShares && walk.last() && args.k_tiles >= Traits::kStages;
    if (!mine && !halved) {  // the other warpgroup's tile: skips its stages
      at.skip(unit.k.last - unit.k.first);
      continue;
    }
    PieceRange pieces = {0, Traits::kPieces};
    GemmAccumulators<Config> acc;
    if (mine) {
      brought.begin(walk);
      if constexpr (kInitsAccumulator) {
        init_accumulators<Config>(acc, epilogue, args, unit);
        if (!begun) wait_for_barriers<Config>();
        begun = true;
      }
      // A barrier distinguishes a phase only from the next one: a warpgroup that waits for a stage must have seen all
      // earlier phases, so the warpgroups take turns. The first warpgroup's turn 0 does not wait.
      if constexpr (Config::kPingPong) shared.turn[group].wait((number / 2 + group + 1) & 1);
      if constexpr (Traits::kSplit) {
#pragma unroll
        for (int i = 0; !kInitsAccumulator && i < Config::kTileN / 2; ++i) acc[0][i] = 0;
        multiply_split<Config>(acc[0], shared, unit.k.last - unit.k.first, first_row, at);
      } else {
        gemm_multiply<Config>(acc, shared, unit.k.last - unit.k.first, first_row, at, group, !kInitsAccumulator);
      }
      if constexpr (kShares) {
        if (halved) {
          HalfOfSums<Config>::give(acc, shared);
          pieces.last /= 2;
        }
      }
    } else if constexpr (kShares) {
      HalfOfSums<Config>::take(acc, shared);
      brought.join(number / 2);
      pieces.first = pieces.last / 2;
    }
    if constexpr (Config::kStream) {
      if (unit.k.first > 0) {
        store_partials<Config>(acc, args, group);
        continue;
      }
      load_partials<Config>(acc, args, group, args.k_tiles - unit.k.last);
    }
    store_tile<Config>(acc, epilogue, args, map_d, staging, turn, unit, unit.m + first_row + warp * 16, pieces,
                       brought);
  }
  if (!begun) wait_for_barriers<Config>();
  if (Config::kStore == GemmStore::kTma && threadIdx.x % 32 == 0) wait_stores_read<0>();
}

// One thread initialises the barriers. `loaders`: arrivals that fill a stage.
template <typename Config>
__device__ inline void init_barriers(const GemmShared<Config>& shared, uint32_t loaders) {
  using Traits = GemmTraits<Config>;
#pragma unroll
  for (int stage = 0; stage < Traits::kStages; ++stage) {
    shared.full[stage].init(loaders);
    shared.empty[stage].init(Traits::kReaders);
    if constexpr (Traits::kSplit) shared.split[stage].init(kGemmSplitWarps);
  }
  if constexpr (Config::kPingPong) {
    for (int group = 0; group < 2; ++group) shared.turn[group].init(4);  // warps
  }
  fence_barrier_init();
  fence_async_shared();
}

// The kernel. Launched with GemmTraits<Config>::kThreads threads, kSharedBytes of dynamic shared memory, clusters of
// kCluster blocks along x; the grid is a multiple of kCluster and at most kCluster blocks per unit of work. `produce`
// fills the ring from one thread, as gemm_produce() does, and waits for the preceding kernel. LightLoads: 24 registers
// are enough for it. `residual`: with kResidual.
template <typename Config, bool LightLoads, typename Epilogue, typename Produce>
__device__ inline void gemm_with(const TensorMap& map_a, const TensorMap& map_b, const TensorMap& map_d,
                                 const GemmArgs& args, const Epilogue& epilogue, const Produce& produce,
                                 [[maybe_unused]] const TensorMap* residual) {
  using Traits = GemmTraits<Config>;
  extern __shared__ uint8_t raw_shared[];
  const GemmShared<Config> shared(raw_shared);
  launch_dependents();
  // One warp initialises the barriers while another determines its first tile.
  if (threadIdx.x == kBarrierInitWarp * 32) {
    prefetch(map_a);
    prefetch(map_b);
    init_barriers<Config>(shared, 1);
  }
  if constexpr (Traits::kResidual) init_residual<Config>(shared);
  __syncwarp();
  if constexpr (Traits::kCluster > 1) cluster_arrive();

  // At entry a thread has 65536 / threads registers: 168 with two consumers. Registers are then moved from the producer
  // to the consumers.
  constexpr bool kMoveRegisters = Traits::kConsumers == 2 || Traits::kSplit;
  constexpr bool kPrefetchRows =
      Config::kStore != GemmStore::kPartial && ReadsMatrices<Epilogue>::value && !Traits::kResidual;
  constexpr bool kTouch = Config::kStore != GemmStore::kPartial && ReadsVectors<Epilogue>::value &&
                          !(Config::kPingPong && kInitsAccumulators<Config, Epilogue, typename Traits::Acc>);
  constexpr bool kLight = LightLoads && !kPrefetchRows;
  if (threadIdx.x < 128) {
    if constexpr (kMoveRegisters) warpgroup_reg_dealloc<kLight ? 24 : 40>();
    if (threadIdx.x < 32) {
      PersistentTileScheduler<Config> walk(args);
      const GemmUnit first = walk.get();
      wait_for_barriers<Config>();
      if (threadIdx.x == 0) {
        auto at = produce(shared, walk, first);
        // A block stays until the others no longer arrive at its barriers.
        for (int stage = 0; Traits::kCluster > 1 && stage < Traits::kStages; ++stage, at.step()) {
          shared.empty[at.stage].wait(at.phase ^ 1);
        }
      }
    } else if constexpr (kPrefetchRows) {
      wait_for_barriers<Config>();
      grid_dependency_wait();
      if constexpr (kTouch) {
        if (threadIdx.x / 32 == kBiasPrefetchWarp) touch_vectors<Config>(epilogue, args);
      }
      // Tiles with fewer k-tiles than the ring has stages pass faster than their rows can be prefetched.
      if (args.k_tiles >= Config::kStages * args.splits) prefetch_rows<Config>(epilogue, args, shared);
    } else if (Traits::kResidual && threadIdx.x / 32 == kResidualWarp) {
      wait_for_barriers<Config>();
      if constexpr (Traits::kResidual) {
        grid_dependency_wait();
        bring_first<Config>(*residual, args, shared);
      }
    } else {
      if constexpr (Traits::kCluster == 1) named_barrier_arrive<kBarriersMade>(Traits::kThreads);
      if constexpr (kTouch) {
        grid_dependency_wait();
        if (threadIdx.x / 32 == kBiasPrefetchWarp) touch_vectors<Config>(epilogue, args);
      }
    }
  } else if (Traits::kSplit && threadIdx.x < 256) {
    if constexpr (Traits::kSplit) {
      warpgroup_reg_dealloc<56>();
      wait_for_barriers<Config>();
      gemm_split<Config>(args, shared);
    }
  } else {
    constexpr int kMost = kLight ? 240 : 232;
    if constexpr (kMoveRegisters) warpgroup_reg_alloc<Traits::kSplit && Traits::kConsumers == 2 ? 208 : kMost>();
    gemm_consume<Config>(map_d, args, epilogue, shared, warp_of_block() / 4 - Traits::kOthers, residual);
  }
}

template <typename Config, typename Epilogue>
__device__ inline void gemm(const TensorMap& map_a, const TensorMap& map_b, const TensorMap& map_d,
                            const GemmArgs& args, const Epilogue& epilogue, const TensorMap* residual = nullptr) {
  // Loading strips and shares needs more registers.
  constexpr bool kWholeTiles = !Config::kStream && Config::kStore != GemmStore::kPartial;
  constexpr bool kLightLoads = Config::kAKMajor && Config::kBKMajor && kWholeTiles;
  gemm_with<Config, kLightLoads>(
      map_a, map_b, map_d, args, epilogue,
      [&](const GemmShared<Config>& shared, PersistentTileScheduler<Config>& walk, const GemmUnit& first) {
        return gemm_produce<Config>(map_a, map_b, shared, walk, first);
      },
      residual);
}

}  // namespace heddle::tile::sm90
