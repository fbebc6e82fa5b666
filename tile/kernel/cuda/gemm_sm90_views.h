// gemm_sm90.h with operands that the copy engine does not read: a warpgroup loads the tiles of both through their views
// (load.h) by cp.async, or through registers, into the ring that wgmma reads. Convolutions of images, batches with
// several strides, odd alignment, converted and computed operands multiply at wgmma's rate.
//
// Config is gemm_sm90.h's, without clusters, swapped operands and stream-K; kAKMajor and kBKMajor say how a tile lies
// in shared memory, as a rule as the operand does in memory. Operands are those of gemm_sm80.h.
#pragma once

#include "tile/kernel/cuda/fragment.h"
#include "tile/kernel/cuda/gemm_sm90.h"
#include "tile/kernel/cuda/load_shifted.h"

namespace heddle::tile::sm90 {

template <typename Config, typename A, typename B>
struct ViewLoaders {
  using Traits = GemmTraits<Config>;
  using In = typename Config::In;
  template <int Rows, bool KMajor>
  using Tile = sm80::SwizzledTile<In, Rows, Traits::kTileK, KMajor>;
  static constexpr int kThreads = 128;
  using LoaderA =
      cuda::TileLoader<A, In, Tile<Traits::kTileM, Config::kAKMajor>, Traits::kTileM, Traits::kTileK, kThreads>;
  using LoaderB =
      cuda::TileLoader<B, In, Tile<Traits::kTileN, Config::kBKMajor>, Traits::kTileN, Traits::kTileK, kThreads>;
  static_assert(Traits::kCluster == 1 && !Config::kSwapped && !Config::kStream && Traits::kStages >= 3);
  static_assert((Config::kAKMajor || Traits::kTileM % 64 == 0) && (Config::kBKMajor || Traits::kTileN % 64 == 0));
};

template <typename Loader>
__device__ inline void load_stage(Loader& loader, uint8_t* to) {
  if constexpr (Loader::kAsync) {
    loader.copy(shared_address(to));
  } else {
    loader.fetch();
    loader.put(to);
  }
  loader.next();
}

// The warpgroup that fills the ring. Copies of kBehind stages are under way while the next one is asked for.
template <typename Config, typename A, typename B>
__device__ inline void gemm_load(const A& operand_a, const B& operand_b, const GemmArgs& args,
                                 const GemmShared<Config>& shared) {
  using Traits = GemmTraits<Config>;
  using Loaders = ViewLoaders<Config, A, B>;
  constexpr int kBehind = Traits::kStages > 3 ? 2 : 1;
  RingPosition<Traits::kStages> at, arrived;
  int32_t behind = 0;
  const auto complete = [&] {
    fence_async_shared();
    shared.full[arrived.stage].arrive();
    arrived.step();
  };
  for (GemmWalk<Config> walk(args); walk.valid(); walk.next()) {
    const GemmUnit unit = walk.get();
    typename Loaders::LoaderA a(operand_a, unit.batch, unit.m, unit.k.first * Traits::kTileK);
    typename Loaders::LoaderB b(operand_b, unit.batch, unit.n, unit.k.first * Traits::kTileK);
#pragma unroll 1
    for (int32_t k = unit.k.first; k < unit.k.last; ++k, at.step()) {
      shared.empty[at.stage].wait(at.phase ^ 1);
      load_stage(a, shared.a + at.stage * Traits::kABytes);
      load_stage(b, shared.b + at.stage * Traits::kBBytes);
      sm80::commit_copies();
      if (behind == kBehind) {
        sm80::wait_copies<kBehind>();
        complete();
      } else {
        ++behind;
      }
    }
  }
  sm80::wait_copies<0>();
  for (; behind > 0; --behind) complete();
}

// The kernel. Launched as gemm() is.
template <typename Config, typename A, typename B, typename Epilogue>
__device__ inline void gemm_views(const TensorMap& map_d, const GemmArgs& args, const A& operand_a, const B& operand_b,
                                  const Epilogue& epilogue) {
  using Traits = GemmTraits<Config>;
  constexpr int kLoaders = ViewLoaders<Config, A, B>::kThreads;
  extern __shared__ uint8_t raw_shared[];
  const GemmShared<Config> shared(raw_shared);
  if (threadIdx.x == 0) {
    if (Config::kStore == GemmStore::kTma) prefetch(map_d);
    for (int stage = 0; stage < Traits::kStages; ++stage) {
      shared.full[stage].init(kLoaders);
      shared.empty[stage].init(Traits::kReaders);
    }
    if constexpr (Config::kPingPong) {
      for (int group = 0; group < 2; ++group) shared.turn[group].init(4);  // warps
    }
    fence_barrier_init();
  }
  __syncthreads();

  // Registers at entry are 65536 / threads; with two consumers 168. Addresses need more than the copy engine's thread.
  constexpr bool kMoveRegisters = Traits::kConsumers == 2;
  if (threadIdx.x < kLoaders) {
    if constexpr (kMoveRegisters) give_registers<104>();
    gemm_load<Config>(operand_a, operand_b, args, shared);
  } else {
    if constexpr (kMoveRegisters) take_registers<200>();
    gemm_consume<Config>(map_d, args, epilogue, shared, static_cast<int32_t>(threadIdx.x) / 128 - 1);
  }
}

}  // namespace heddle::tile::sm90
