// D = epilogue(A B) with the ordinary arithmetic instructions of threads: true f32, f64, integers, and any element type
// that converts to one of these. This is the fallback, on every device, for products that tensor cores do not support.
//
// Config, operands, epilogue and GemmArgs are those of tile/kernel/cuda/gemm/sm80.h, except that Config has one type In
// instead of InA and InB:
//
//   using In = float;    // float, double, int32_t, int64_t: the type of converted operands and of sums
//
// Out is not used. Typical sizes are
//
//   kTileM = 128, kTileN = 128, kTileK = 8, kWarpsM = 4, kWarpsN = 2, kStages = 2
//
// The 32 lanes of a warp cover the warp's part of the tile as 4 x 8 lanes. Each lane has kThreadM x kThreadN sums (8 x
// 8 with these sizes), in groups of rows and columns whose elements fill 16 bytes.
#pragma once

#include "tile/core/cuda_gemm.h"
#include "tile/kernel/cuda/gemm/fragments_to_rows.h"
#include "tile/kernel/cuda/operand/ring.h"

namespace heddle::tile::cuda {

// The layout of a tile in shared memory. For each k, the elements of all rows are contiguous, so that a lane loads
// neighbouring rows at once. If global memory is contiguous along k, elements of several k are stored at once; padding
// puts them into different banks.
template <typename T, int Rows, int TileK>
struct LineTile {
  static constexpr bool kAlongK = false;
  static constexpr int kPitch = Rows * sizeof(T) + kGemmLinePad, kBytes = TileK * kPitch;
  __device__ static uint32_t place(uint32_t row, uint32_t k) { return k * kPitch + row * sizeof(T); }
};

template <typename Config, typename A, typename B>
struct SimtTraits {
  using In = typename Config::In;
  static constexpr int kTileM = Config::kTileM, kTileN = Config::kTileN, kTileK = Config::kTileK;
  static constexpr int kThreads = 32 * Config::kWarpsM * Config::kWarpsN;
  static constexpr int kLanesM = 4, kLanesN = 8, kGroup = 16 / sizeof(In);
  static constexpr int kWarpM = kTileM / Config::kWarpsM, kWarpN = kTileN / Config::kWarpsN;
  static constexpr int kThreadM = kWarpM / kLanesM, kThreadN = kWarpN / kLanesN;
  using LoaderA = TileLoader<A, In, LineTile<In, kTileM, kTileK>, kTileM, kTileK, kThreads>;
  using LoaderB = TileLoader<B, In, LineTile<In, kTileN, kTileK>, kTileN, kTileK, kThreads>;
  static constexpr int kSharedBytes =
      gemm_simt_shared_bytes(kTileM, kTileN, kTileK, static_cast<int>(sizeof(In)), Config::kStages);
  static_assert(kThreadM % kGroup == 0 && kThreadN % kGroup == 0 && kTileK % 2 == 0 && Config::kStages >= 2);
};

// sum += a * b. Integers wrap.
template <typename T>
__device__ inline void multiply_add(T& sum, T a, T b) {
  if constexpr (is_float<T>) {
    sum += a * b;
  } else {
    using U = uint_t<sizeof(T)>;
    sum = static_cast<T>(static_cast<U>(sum) + static_cast<U>(a) * static_cast<U>(b));
  }
}

// Loads the elements of one k: groups of kGroup elements, with a stride of `apart` bytes between groups.
template <typename T, int Count>
__device__ inline void load_groups(T (&v)[Count], const uint8_t* from, int apart) {
  constexpr int kGroup = 16 / sizeof(T);
#pragma unroll
  for (int g = 0; g < Count / kGroup; ++g) {
    const auto part = *reinterpret_cast<const Neighbours<T, kGroup>*>(from + g * apart);
#pragma unroll
    for (int i = 0; i < kGroup; ++i) v[g * kGroup + i] = part.x[i];
  }
}

// The kernel. Launched with SimtTraits<...>::kThreads threads and kSharedBytes of dynamic shared memory.
template <typename Config, typename A, typename B, typename Epilogue>
__device__ inline void gemm_simt(const GemmArgs& args, const A& operand_a, const B& operand_b,
                                 const Epilogue& epilogue) {
  using Traits = SimtTraits<Config, A, B>;
  using In = typename Config::In;
  using LoaderA = typename Traits::LoaderA;
  using LoaderB = typename Traits::LoaderB;
  constexpr int kM = Traits::kThreadM, kN = Traits::kThreadN, kGroup = Traits::kGroup;
  extern __shared__ __align__(16) uint8_t raw_shared[];

  // Partition: this block's tile and part of k, and this lane's first row and column in the tile.
  const GemmUnit unit = gemm_unit(args, static_cast<int32_t>(blockIdx.x), Config::kTileM, Config::kTileN);
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int row = warp / Config::kWarpsN * Traits::kWarpM + lane / Traits::kLanesN * kGroup;
  const int column = warp % Config::kWarpsN * Traits::kWarpN + lane % Traits::kLanesN * kGroup;

  // Main loop: the elements of the next k are loaded while the current ones are multiplied.
  In acc[kM][kN] = {};
  LoaderA load_a(operand_a, unit.batch, unit.m, unit.k.first * Config::kTileK);
  LoaderB load_b(operand_b, unit.batch, unit.n, unit.k.first * Config::kTileK);
  const int32_t count = unit.k.last - unit.k.first;
  Ring<Config::kStages, LoaderA, LoaderB> ring(raw_shared, load_a, load_b, count);
  In a[2][kM], b[2][kN];
  const auto read = [&](int k, int to) {
    const uint8_t* stage = raw_shared + ring.current();
    load_groups(a[to], stage + LoaderA::Tile::place(row, k), Traits::kLanesM * 16);
    load_groups(b[to], stage + LoaderA::Tile::kBytes + LoaderB::Tile::place(column, k), Traits::kLanesN * 16);
  };
  read(0, 0);
#pragma unroll 1
  for (int32_t tile = 0; tile < count; ++tile) {
#pragma unroll
    for (int k = 0; k < Config::kTileK; ++k) {
      const bool last = k == Config::kTileK - 1;
      if (k == 0) ring.begin_load();
      if (last) ring.step();
      read(last ? 0 : k + 1, (k + 1) % 2);
#pragma unroll
      for (int i = 0; i < kM; ++i) {
#pragma unroll
        for (int j = 0; j < kN; ++j) multiply_add(acc[i][j], a[k % 2][i], b[k % 2][j]);
      }
    }
  }
  ring.drain();

  // Epilogue: one group of neighbouring columns at a time.
  In* partial = static_cast<In*>(args.partial) + unit.batch * args.p_batch + unit.split * args.p_split;
#pragma unroll
  for (int i = 0; i < kM; ++i) {
    const int m = unit.m + row + i / kGroup * Traits::kLanesM * kGroup + i % kGroup;
    if (m >= args.m) continue;
#pragma unroll
    for (int j = 0; j < kN; j += kGroup) {
      const int n = unit.n + column + j * Traits::kLanesN, valid = args.n - n < kGroup ? args.n - n : kGroup;
      if (valid <= 0) continue;
      In v[kGroup];
#pragma unroll
      for (int c = 0; c < kGroup; ++c) v[c] = acc[i][j + c];
      if constexpr (Config::kStore == GemmStore::kPartial) {
        store_row<kGroup>(partial + m * args.p_row + n, v, valid);
      } else {
        epilogue(v, unit.batch, m, n, valid);
      }
    }
  }
}

}  // namespace heddle::tile::cuda
