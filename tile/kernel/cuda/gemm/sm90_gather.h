// The kernel of tile/kernel/cuda/gemm/sm90.h for operands that TMA cannot read. A warpgroup loads the tiles of both
// operands through their views (load.h), by cp.async or through registers, into the ring that wgmma reads. So products
// run at wgmma's rate even if an operand is an image of a convolution, has several batch strides or odd alignment, or
// is converted or computed.
//
// Config is that of tile/kernel/cuda/gemm/sm90.h, but clusters, swapped operands and stream-K are not supported.
// kAKMajor and kBKMajor give the layout of a tile in shared memory, which is normally the layout of the operand in
// memory. Operands are those of tile/kernel/cuda/gemm/sm80.h.
#pragma once

#include "tile/kernel/cuda/gemm/sm90.h"
#include "tile/kernel/cuda/operand/fragment.h"
#include "tile/kernel/cuda/operand/load_shifted.h"

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
  static_assert(Traits::kCluster == 1 && !kSwapped<Config> && !kStreamK<Config> && Traits::kStages >= 3);
  static_assert((Config::kAKMajor || Traits::kTileM % 64 == 0) && (Config::kBKMajor || Traits::kTileN % 64 == 0));
};

// Returns the bytes of a stage of unaligned words, for an operand that is shifted while it is copied to its tile
// (load_shifted.h). Returns 0 for other operands.
template <typename Loader>
constexpr int raw_bytes() {
  if constexpr (requires { Loader::kRawBytes; }) {
    return Loader::kRawBytes;
  } else {
    return 0;
  }
}

// The work that remains to be done for a stage whose loads are in flight.
template <typename Loader, bool Raw = (raw_bytes<Loader>() > 0)>
struct UnderWay {
  typename Loader::Copied copied;
  __device__ void finish(const uint8_t* raw, uint8_t* to) const { Loader::finish(copied, raw, to); }
};
template <typename Loader>
struct UnderWay<Loader, false> {
  __device__ void finish(const uint8_t*, uint8_t*) const {}
};

template <typename Loader>
__device__ inline UnderWay<Loader> load_stage(Loader& loader, uint8_t* to, uint8_t* raw) {
  UnderWay<Loader> stage;
  if constexpr (raw_bytes<Loader>() > 0) {
    stage.copied = loader.copy(shared_address(raw));
  } else if constexpr (Loader::kAsync) {
    loader.copy(shared_address(to));
  } else {
    loader.fetch();
    loader.put(to);
  }
  loader.next();
  return stage;
}

// The code of the warpgroup that fills the ring. Copies of kBehind stages are in flight while the next stage is
// requested.
template <typename Config, typename A, typename B>
__device__ inline void gemm_load(const A& operand_a, const B& operand_b, const GemmArgs& args,
                                 const GemmShared<Config>& shared) {
  using Traits = GemmTraits<Config>;
  using Loaders = ViewLoaders<Config, A, B>;
  using LoaderA = typename Loaders::LoaderA;
  using LoaderB = typename Loaders::LoaderB;
  constexpr int kRawA = raw_bytes<LoaderA>(), kRaw = kRawA + raw_bytes<LoaderB>();
  constexpr int kShifted = (kRawA > 0 ? 1 : 0) + (kRaw > kRawA ? 1 : 0);
  constexpr int kBehind = gemm_stages_behind(Traits::kStages, kShifted, Config::kTileM + Config::kTileN);
  // The last element is the newest stage. All elements are initialised before the loop, because ptxas 13.0 assumes that
  // values that begin undefined are the same in all lanes, and keeps them in uniform registers.
  struct Stage {
    UnderWay<LoaderA> a;
    UnderWay<LoaderB> b;
  } under_way[kBehind + 1] = {};
  uint8_t* const raw = reinterpret_cast<uint8_t*>(shared.turn + 2);
  PipelineState<Traits::kStages> at, arrived;
  PipelineState<kBehind + 1> raw_at, raw_arrived;
  int32_t behind = 0;
  const auto advance = [&] {
    if constexpr (kRaw > 0) {
#pragma unroll
      for (int i = 0; i < kBehind; ++i) under_way[i] = under_way[i + 1];
    }
  };
  const auto complete = [&] {  // completes the oldest stage
    if constexpr (kRaw > 0) {
      const uint8_t* from = raw + raw_arrived.stage * kRaw;
      if constexpr (kShifted == 2) shared.empty[arrived.stage].wait(arrived.phase ^ 1);
      __syncwarp();
      under_way[0].a.finish(from, shared.a + arrived.stage * Traits::kABytes);
      under_way[0].b.finish(from + kRawA, shared.b + arrived.stage * Traits::kBBytes);
      __syncwarp();
      raw_arrived.step();
    }
    fence_async_shared();
    shared.full[arrived.stage].arrive();
    arrived.step();
  };
  for (PersistentTileScheduler<Config> walk(args); walk.valid(); walk.next()) {
    const GemmUnit unit = walk.get();
    LoaderA a(operand_a, unit.batch, unit.m, unit.k.first * Traits::kTileK);
    LoaderB b(operand_b, unit.batch, unit.n, unit.k.first * Traits::kTileK);
#pragma unroll 1
    for (int32_t k = unit.k.first; k < unit.k.last; ++k, at.step(), raw_at.step()) {
      if constexpr (kShifted < 2) shared.empty[at.stage].wait(at.phase ^ 1);
      advance();
      uint8_t* to = raw + raw_at.stage * kRaw;
      under_way[kBehind].a = load_stage(a, shared.a + at.stage * Traits::kABytes, to);
      under_way[kBehind].b = load_stage(b, shared.b + at.stage * Traits::kBBytes, to + kRawA);
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
  for (int32_t missing = kBehind; missing > behind; --missing) advance();
  for (; behind > 0; --behind) {
    advance();
    complete();
  }
}

// The kernel. It is launched like gemm() of sm90.h.
template <typename Config, typename A, typename B, typename Epilogue>
__device__ inline void gemm_views(const TensorMap& map_d, const GemmArgs& args, const A& operand_a, const B& operand_b,
                                  const Epilogue& epilogue) {
  using Traits = GemmTraits<Config>;
  constexpr int kLoaders = ViewLoaders<Config, A, B>::kThreads;
  extern __shared__ uint8_t raw_shared[];
  const GemmShared<Config> shared(raw_shared);
  launch_dependents();
  if (threadIdx.x == 0) {
    if (Config::kStore == GemmStore::kTma) prefetch(map_d);
    for (int stage = 0; stage < Traits::kStages; ++stage) {
      shared.full[stage].init(kLoaders);
      shared.empty[stage].init(Traits::kReaders);
    }
    if constexpr (kPingPong<Config>) {
      for (int group = 0; group < 2; ++group) shared.turn[group].init(4);  // warps
    }
    fence_barrier_init();
  }
  grid_dependency_wait();
  __syncthreads();

  // At entry, a thread has 65536 / threads registers: 168 with two consumers. Address computations need more registers
  // here than in TMA's single thread.
  constexpr bool kMoveRegisters = Traits::kConsumers == 2;
  if (threadIdx.x < kLoaders) {
    if constexpr (kMoveRegisters) warpgroup_reg_dealloc<104>();
    gemm_load<Config>(operand_a, operand_b, args, shared);
  } else {
    if constexpr (kMoveRegisters) warpgroup_reg_alloc<200>();
    gemm_consume<Config, true>(map_d, args, epilogue, shared, static_cast<int32_t>(threadIdx.x) / 128 - 1);
  }
}

}  // namespace heddle::tile::sm90
