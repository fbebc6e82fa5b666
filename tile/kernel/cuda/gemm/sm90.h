// D = epilogue(A B) on sm_90a. One warpgroup fills a ring of tiles in shared memory through TMA, and one or two
// warpgroups multiply. Blocks are persistent: each processes many tiles.
//
// A generated unit provides a configuration with named fields,
//
//   struct Config {
//     using In = tile::half;                      // half or bfloat; if both operands are k-major, also tf32, tf32x2,
//                                                 // e4m3, e5m2, int8_t
//     using Out = tile::half;                     // half, bfloat, float, int32_t
//     static constexpr int kTileM = 128, kTileN = 256, kStages = 4;
//     static constexpr int kConsumers = 2;        // the number of warpgroups that multiply
//     static constexpr auto kSchedule = tile::GemmSchedule::kCooperative;  // kStreamK: not with clusters or kPartial
//     static constexpr auto kForm = tile::GemmForm::kPlain;  // kResidual: only with kTma, not with kStreamK
//     static constexpr int kClusterM = 2, kClusterN = 1;
//     static constexpr bool kAKMajor = true, kBKMajor = true;
//     static constexpr bool kConstantA = false, kConstantB = true;  // no kernel writes the operand, so its first tiles
//                                                 // are loaded while the preceding kernel still runs
//     static constexpr bool kWholeColumns = true; // the number of columns of D is a multiple of kTileN
//     static constexpr bool kReadOnceA = false, kReadOnceB = false;  // the L2 evicts the operand first
//     static constexpr auto kStore = tile::GemmStore::kTma;
//   };
//
// and an epilogue. It is called with up to W neighbouring elements of a row of D: v[0..n) are columns [col, col + n).
// With GemmStore::kTma and kRows, the epilogue returns the values of D in v. Otherwise it stores D itself, and Out is
// not used.
//
//   struct Epilogue {
//     template <typename T, int W>
//     __device__ void operator()(T (&v)[W], int batch, int row, int col, int n) const;
//   };
//
// The epilogue may also reduce neighbouring elements of a row or column (reduce_fragments.h), except with kSwapped or
// kPartial.
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

inline constexpr int kBarriersMade = 1;           // the named barrier that signals that the mbarriers are initialised
inline constexpr uint32_t kBarrierInitWarp = 1;   // the warp that initialises the mbarriers
inline constexpr uint32_t kBiasPrefetchWarp = 2;  // the warp that prefetches the epilogue's vectors, such as a bias
inline constexpr uint32_t kResidualWarp = 3;      // the warp that loads the first pieces of the residual

// Loads this block's part of one operand's tile, which is 1 / Shares of the tile. If Shares > 1, the part is multicast
// to every block of the cluster.
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

// Waits until the mbarriers of all blocks of the cluster are initialised. Without clusters, this is a named barrier of
// the whole block; threads that use no mbarrier arrive there without waiting.
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

// Prefetches into the L2 the rows of the matrices that the epilogue reads, one tile after another, at the pace of the
// operand loads. The idle warps of the producer warpgroup run this function.
template <typename Config, typename Epilogue>
__device__ inline void prefetch_rows(const Epilogue& epilogue, const GemmArgs& args, const GemmShared<Config>& shared) {
  constexpr int32_t kRows = kSwapped<Config> ? Config::kTileN : Config::kTileM;
  constexpr int32_t kColumns = kSwapped<Config> ? Config::kTileM : Config::kTileN;
  constexpr int32_t kThreads = 96;
  const int32_t rows = kSwapped<Config> ? args.n : args.m, columns = kSwapped<Config> ? args.m : args.n;
  PipelineState<Config::kStages> at;
  for (PersistentTileScheduler<Config> walk(args); walk.valid(); walk.next()) {
    const GemmUnit unit = walk.get();
    shared.empty[at.stage].wait_briefly(at.phase ^ 1);
    at.skip(unit.k.last - unit.k.first);
    const int32_t row = kSwapped<Config> ? unit.n : unit.m, col = kSwapped<Config> ? unit.m : unit.n;
    const int32_t some = columns - col < kColumns ? columns - col : kColumns;
    for (int32_t r = row + static_cast<int32_t>(threadIdx.x) - 32; r < row + kRows && r < rows; r += kThreads) {
      epilogue.matrices([&](const auto* from) { prefetch_global(from, static_cast<uint32_t>(some) * sizeof(*from)); },
                        unit.batch, r, col);
    }
  }
}

// Prefetches into the L1 the vectors that the epilogue reads, by reading one byte of every 32 bytes. TMA loads bypass
// the L1, so the vectors stay there. One idle warp runs this function before the consumers need the vectors. Otherwise
// the consumers would stall on loads of the vectors, since memory is busy with the tiles of the ring.
template <typename Config, typename Epilogue>
__device__ inline void touch_vectors(const Epilogue& epilogue, const GemmArgs& args) {
  constexpr uint32_t kColumns = kSwapped<Config> ? Config::kTileM : Config::kTileN;
  const int32_t columns = kSwapped<Config> ? args.m : args.n;
  uint32_t read = 0;
  for (PersistentTileScheduler<Config> walk(args); walk.valid(); walk.next()) {
    const GemmUnit unit = walk.get();
    const int32_t row = kSwapped<Config> ? unit.n : unit.m, col = kSwapped<Config> ? unit.m : unit.n;
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

// The coordinates in an operand's tensor map at which the operand's tile begins. If a row contains several heads, a
// head is an offset along the row. An operand that all batches share has batch 0.
struct OperandPlace {
  int32_t row, k, batch;
};
template <bool KMajor>
__device__ inline OperandPlace place_of(const GemmUnit& unit, int32_t row, int32_t outer, int32_t head, int32_t step) {
  if (step == 0) return {row, 0, unit.batch};
  if (step == kGemmOneForAll) return {row, 0, 0};
  return {KMajor ? row : row + head * step, KMajor ? head * step : 0, outer};
}

// Loads the constant operands of the first k-tiles (as many as the ring has stages), then waits for the preceding
// kernel. Returns the number of these k-tiles. The caller then loads the other operand of these k-tiles, without
// waiting for free stages.
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

// Fills the ring with the tiles of all units of work, starting with `unit`. One thread runs this function. Returns the
// ring position after the last filled stage.
template <typename Config>
__device__ inline PipelineState<Config::kStages> gemm_produce(const TensorMap& map_a, const TensorMap& map_b,
                                                              const GemmShared<Config>& shared,
                                                              PersistentTileScheduler<Config>& walk, GemmUnit unit) {
  using Traits = GemmTraits<Config>;
  const GemmArgs& args = walk.args;
  // Loads k-tile k of the unit into a stage. With `constants` true, loads only the constant operands; otherwise, only
  // the other operands.
  const auto load = [&](auto constants, const OperandPlace& a, const OperandPlace& b, int32_t k, uint32_t stage) {
    if constexpr (Config::kConstantA == decltype(constants)::value) {
      load_operand<Config::kTileM, Traits::kTileK, Config::kAKMajor, Config::kClusterN,
                   cache_hint_of(Config::kReadOnceA)>(map_a, shared.full[stage], shared.a + stage * Traits::kABytes,
                                                      a.row, a.k + k * Traits::kTileK, a.batch, walk.rank);
    }
    if constexpr (Config::kConstantB == decltype(constants)::value) {
      load_operand<Config::kTileN, Traits::kTileK, Config::kBKMajor, Config::kClusterM,
                   cache_hint_of(Config::kReadOnceB)>(map_b, shared.full[stage], shared.b + stage * Traits::kBBytes,
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

// Sets the accumulators of a warpgroup to the epilogue's initial values.
template <typename Config, typename Epilogue>
__device__ inline void init_accumulators(GemmAccumulators<Config>& acc, const Epilogue& epilogue, const GemmArgs& args,
                                         const GemmUnit& unit) {
#pragma unroll
  for (int j = 0; j < Config::kTileN / 8; ++j) {
    float v[2] = {0, 0};  // the initial values of a part of k that does not begin at k = 0
    const int32_t column = unit.n + 8 * j + 2 * static_cast<int32_t>(threadIdx.x % 4);
    const bool inside = Config::kWholeColumns || column < args.n;
    if (!kStreamK<Config> || unit.k.first == 0)
      epilogue.accumulator_init(v, unit.batch, 0, inside ? column : args.n - 2, 2);
#pragma unroll
    for (int block = 0; block < GemmTraits<Config>::kBlocksM; ++block) {
#pragma unroll
      for (int i = 0; i < 4; ++i) acc[block][4 * j + i] = v[i % 2];
    }
  }
}

// Multiplies the tiles of A and B in one stage. If `first`, the accumulators are not initialised, so the products
// overwrite them.
template <typename Config>
__device__ inline void multiply_stage(GemmAccumulators<Config>& acc, uint32_t a, uint32_t b, bool first) {
  using Traits = GemmTraits<Config>;
  using Instruction = Wgmma<typename Config::In, Config::kTileN>;
  // Each of the four steps multiplies 32 bytes of k. A step advances by 32 bytes in a row if the operand is k-major,
  // and otherwise by 16 rows of k in a strip.
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

// Signals to every block of the cluster that the warpgroup has read a stage. `empty` is the barrier of the stage.
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

// Multiplies `k_tiles` k-tiles from the ring. `row` is the warpgroup's first row in the tile of A. If `empty`, the
// accumulators are not initialised, so the first products overwrite them.
template <typename Config>
__device__ inline void gemm_multiply(GemmAccumulators<Config>& acc, const GemmShared<Config>& shared, int32_t k_tiles,
                                     uint32_t row, PipelineState<Config::kStages>& at, int32_t group, bool empty) {
  using Traits = GemmTraits<Config>;
  const uint32_t a = shared_address(shared.a) + row * kGemmRowBytes, b = shared_address(shared.b);
  uint32_t before = at.stage;
  // There is always at least one k-tile, so this is a do loop. The body must not be duplicated and must have no wait
  // inside a branch. Otherwise, for some configurations, ptxas sees instructions other than wgmma that use the
  // accumulators, and serialises the wgmmas.
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
  if (kPingPong<Config> && threadIdx.x % 32 == 0) shared.turn[1 - group].arrive();
  wgmma_wait<0>();
  pin_all<Config>(acc);
  release_stage<Config>(shared.empty[before]);
}

// Stores one warp's 16 rows of the kernel's result (the transpose of D with kSwapped), starting at `row`. Used for all
// stores except those of whole pieces by store_rows().
template <typename Config, typename Epilogue>
__device__ inline void store_block(const typename GemmTraits<Config>::Acc (&acc)[Config::kTileN / 2],
                                   const Epilogue& epilogue, const GemmArgs& args, const TensorMap& map_d,
                                   uint8_t* staging, uint32_t& turn, const GemmUnit& unit, int32_t row) {
  using Out = typename Config::Out;
  constexpr int N = Config::kTileN, kPair = cuda::kColumnsOfPair<Epilogue>;
  const int32_t col = unit.n / kPair;
  if constexpr (Config::kStore == GemmStore::kPartial) {
    auto* to = static_cast<typename GemmTraits<Config>::Acc*>(args.partial) + unit.split * args.p_split;
    store_partial<kSwapped<Config>, N>(acc, args, to + unit.batch * args.p_batch, row, unit.n);
  } else if constexpr (Config::kStore == GemmStore::kEpilogue) {
    store_epilogue<kSwapped<Config>, N / kPair>(acc, epilogue, args, staging, unit.batch, row, col);
  } else if constexpr (Config::kStore == GemmStore::kRows) {
    store_any_rows<kSwapped<Config>, N / kPair, Out>(acc, epilogue, args, staging, unit.batch, row, col);
  } else {
    store_columns<N, Out>(acc, epilogue, args, map_d, staging, turn, unit.batch, row, unit.n);
  }
}

// Stores one warp's rows of a tile, starting at `row`. If rows are stored as whole pieces, stores only `pieces`.
template <typename Config, typename Epilogue, typename Brought>
__device__ inline void store_tile(GemmAccumulators<Config>& acc, const Epilogue& epilogue, const GemmArgs& args,
                                  const TensorMap& map_d, uint8_t* staging, uint32_t& turn, const GemmUnit& unit,
                                  int32_t row, const PieceRange& pieces, Brought& brought) {
  constexpr int kBlocks = GemmTraits<Config>::kBlocksM;
  static_assert(Config::kStore == GemmStore::kPartial || cuda::Gates<Epilogue>::value == GemmTraits<Config>::kGated);
  if constexpr (cuda::Reduces<Epilogue>::value) {
    static_assert(Config::kStore != GemmStore::kPartial && !kSwapped<Config>);
#pragma unroll
    for (int block = 0; block < kBlocks; ++block) {
      const auto sums = [&](int j, int h, int i) -> auto& {
        return acc[block][4 * j + 2 * h + i];
      };
      cuda::reduce_fragments<Config::kTileN>(sums, epilogue, args, unit.batch, row + block * 64, unit.n);
    }
    if (!cuda::Reduces<Epilogue>::stores) return;
  }
  if constexpr (Config::kStore == GemmStore::kTma && !kSwapped<Config>) {
    store_rows<kBlocks, Config::kTileN, typename Config::Out, Config::kWholeColumns>(
        acc, epilogue, args, map_d, staging, unit.batch, row, unit.n / cuda::kColumnsOfPair<Epilogue>, pieces, brought);
  } else {
#pragma unroll
    for (int block = 0; block < kBlocks; ++block) {
      store_block<Config>(acc[block], epilogue, args, map_d, staging, turn, unit, row + block * 64);
    }
  }
}

// Multiplies and stores the tiles of one consumer warpgroup. `group` is the warpgroup's index among the consumers.
// Waits until the mbarriers are initialised, unless `Made` says that they already are.
template <typename Config, bool Made = false, typename Epilogue>
__device__ inline void gemm_consume(const TensorMap& map_d, const GemmArgs& args, const Epilogue& epilogue,
                                    const GemmShared<Config>& shared, int32_t group,
                                    [[maybe_unused]] const TensorMap* residual = nullptr) {
  using Traits = GemmTraits<Config>;
  const int32_t warp = warp_of_block() % 4, first_row = kPingPong<Config> ? 0 : group * Traits::kRowsPerGroup;
  uint8_t* staging = shared.staging + (group * 4 + warp) * Traits::kStagingBytes;
  ResidualPipeline<Config, Traits::kResidual> brought(residual, shared);
  uint32_t turn = 0;
  PipelineState<Traits::kStages> at;
  int32_t number = 0;
  constexpr bool kInitsAccumulator = kInitsAccumulators<Config, Epilogue, typename Traits::Acc>;
  constexpr bool kShares = kSharesLast<Config, Epilogue>;
  // Loads initial values of the accumulators as early as possible, before memory is busy with the tiles of the ring.
  // Without clusters, however, the producer waits for this warpgroup at the named barrier, so this warpgroup waits at
  // that barrier first.
  bool begun = !kInitsAccumulator || Traits::kCluster == 1;
  if (begun && !Made) wait_for_barriers<Config>();
  grid_dependency_wait();
  for (PersistentTileScheduler<Config> walk(args); walk.valid(); walk.next(), ++number) {
    const GemmUnit unit = walk.get();
    const bool mine = !kPingPong<Config> || number % 2 == group;
    // True if this is the block's last tile and each warpgroup stores one half of it. The warpgroups then pass sums
    // through the ring. This requires at least as many k-tiles as stages: the last tile has then refilled every stage,
    // and a stage is refilled only after the other warpgroup has read it.
    const bool halved = kShares && walk.last() && args.k_tiles >= Traits::kStages;
    if (!mine && !halved) {  // a tile of the other warpgroup: skip the stages of this tile
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
      // A wait on a barrier can only distinguish the current phase from the next phase, so a warpgroup must not start
      // to wait for a stage while an earlier phase of the stage is incomplete. Therefore the warpgroups alternate. The
      // first warpgroup does not wait before its first tile.
      if constexpr (kPingPong<Config>) shared.turn[group].wait((number / 2 + group + 1) & 1);
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
    if constexpr (kStreamK<Config>) {
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

// Initialises the mbarriers. One thread runs this function. `loaders` is the number of arrivals that fill a stage.
template <typename Config>
__device__ inline void init_barriers(const GemmShared<Config>& shared, uint32_t loaders) {
  using Traits = GemmTraits<Config>;
#pragma unroll
  for (int stage = 0; stage < Traits::kStages; ++stage) {
    shared.full[stage].init(loaders);
    shared.empty[stage].init(Traits::kReaders);
    if constexpr (Traits::kSplit) shared.split[stage].init(kGemmSplitWarps);
  }
  if constexpr (kPingPong<Config>) {
    for (int group = 0; group < 2; ++group) shared.turn[group].init(4);  // one arrival per warp
  }
  fence_barrier_init();
  fence_async_shared();
}

// The kernel. A launch has GemmTraits<Config>::kThreads threads per block, kSharedBytes bytes of dynamic shared memory
// and clusters of kCluster blocks along x. The number of blocks is a multiple of kCluster, with at most kCluster blocks
// per unit of work. One thread calls `produce`, which fills the ring like gemm_produce() and waits for the preceding
// kernel. LightLoads: `produce` needs at most 24 registers. `residual` is the tensor map of the residual, used only
// with kResidual.
template <typename Config, bool LightLoads, typename Epilogue, typename Produce>
__device__ inline void gemm_with(const TensorMap& map_a, const TensorMap& map_b, const TensorMap& map_d,
                                 const GemmArgs& args, const Epilogue& epilogue, const Produce& produce,
                                 [[maybe_unused]] const TensorMap* residual) {
  using Traits = GemmTraits<Config>;
  extern __shared__ uint8_t raw_shared[];
  const GemmShared<Config> shared(raw_shared);
  launch_dependents();
  // One warp initialises the mbarriers while another warp determines the block's first tile.
  if (threadIdx.x == kBarrierInitWarp * 32) {
    prefetch(map_a);
    prefetch(map_b);
    init_barriers<Config>(shared, 1);
  }
  if constexpr (Traits::kResidual) init_residual<Config>(shared);
  __syncwarp();
  if constexpr (Traits::kCluster > 1) cluster_arrive();

  // At entry, a thread has 65536 / kThreads registers, or 168 with two consumers. The producer warpgroup then gives
  // registers to the consumers.
  constexpr bool kMoveRegisters = Traits::kConsumers == 2 || Traits::kSplit;
  constexpr bool kPrefetchRows =
      Config::kStore != GemmStore::kPartial && ReadsMatrices<Epilogue>::value && !Traits::kResidual;
  constexpr bool kTouch = Config::kStore != GemmStore::kPartial && ReadsVectors<Epilogue>::value &&
                          !(kPingPong<Config> && kInitsAccumulators<Config, Epilogue, typename Traits::Acc>);
  constexpr bool kLight = LightLoads && !kPrefetchRows;
  if (threadIdx.x < 128) {
    if constexpr (kMoveRegisters) warpgroup_reg_dealloc<kLight ? 24 : 40>();
    if (threadIdx.x < 32) {
      PersistentTileScheduler<Config> walk(args);
      const GemmUnit first = walk.get();
      wait_for_barriers<Config>();
      if (threadIdx.x == 0) {
        auto at = produce(shared, walk, first);
        // A block must not exit while other blocks of the cluster may still arrive at its mbarriers.
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
      // If a tile has fewer k-tiles than the ring has stages, its rows cannot be prefetched in time.
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

// Returns the argument of this block's product in a launch of equal products over different operands. blockIdx.z is the
// number of the product.
template <typename T, typename... Others>
__device__ inline const T& of_block_z(const T& first, const Others&... others) {
  const T* found = &first;
  unsigned number = 0;
  ((found = ++number == blockIdx.z ? &others : found), ...);
  return *found;
}

template <typename Config, typename Epilogue>
__device__ inline void gemm(const TensorMap& map_a, const TensorMap& map_b, const TensorMap& map_d,
                            const GemmArgs& args, const Epilogue& epilogue, const TensorMap* residual = nullptr) {
  // Loads need more registers if an operand is not k-major, since it is loaded in strips, or if a unit of work has only
  // a part of k. If the sums are integers, ptxas computes constants of the epilogue before the warpgroups part, and
  // keeps them in registers of the loading warpgroup too.
  constexpr bool kWholeTiles = !kStreamK<Config> && Config::kStore != GemmStore::kPartial;
  constexpr bool kInteger = is_same<typename GemmTraits<Config>::Acc, int32_t>;
  constexpr bool kLightLoads = Config::kAKMajor && Config::kBKMajor && kWholeTiles && !kInteger;
  gemm_with<Config, kLightLoads>(
      map_a, map_b, map_d, args, epilogue,
      [&](const GemmShared<Config>& shared, PersistentTileScheduler<Config>& walk, const GemmUnit& first) {
        return gemm_produce<Config>(map_a, map_b, shared, walk, first);
      },
      residual);
}

}  // namespace heddle::tile::sm90
