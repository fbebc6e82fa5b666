// Computes D1 = epilogue(between(A W0) W1) on sm_80 and later. D0 = between(A W0) must have few columns. A block
// computes all columns of its rows of D0. So D0 is passed from the accumulators of the first mma.sync product to the
// fragments of the second, and is never stored in global memory.
//
// If D0 is in registers, a warp has all columns of its rows. A rounded pair of accumulators is then already in the
// right place to be a word of the left operand of the second product. If D0 is in shared memory, its columns are
// divided among several warps, and a barrier separates the two products. All of W1 is loaded into shared memory at the
// start of the first product.
//
// A generated unit provides a configuration, operands, a functor and an epilogue. The operands A, W0 and W1 are as in
// sm80::gemm (W1 is a matrix with index [column of D1][column of D0]). The functor `between` converts accumulators to
// values of D0 and has no side effects. The epilogue stores D1. The configuration has these members:
//
//   struct Config {
//     using In = tile::half;                        // of A, W0, W1 and D0: tile::half or tile::bfloat
//     static constexpr int kTileM = 128, kTileK = 32, kStages = 3;   // of the first product, as in sm80::gemm
//     static constexpr int kColumns0 = 64;          // columns of D0, rounded up to a multiple of 16 * kWarpsN
//     static constexpr int kTileN = 64;             // columns of D1 computed at a time
//     static constexpr int kWarpsM = 4, kWarpsN = 1;
//     static constexpr int kNeighbours = 8;         // columns of D1 passed to the epilogue at a time
//     static constexpr bool kInRegisters = true;    // true: D0 is in registers, which requires kWarpsN = 1
//   };
#pragma once

#include "tile/core/cuda_back_to_back.h"
#include "tile/kernel/cuda/gemm/sm80.h"

namespace heddle::tile::sm80 {

// The configuration of the first product, with the members that GemmMainLoop expects.
template <typename Config>
struct BackToBackFirst {
  using InA = typename Config::In;
  using InB = typename Config::In;
  static constexpr int kTileM = Config::kTileM, kTileN = Config::kColumns0, kTileK = Config::kTileK;
  static constexpr int kWarpsM = Config::kWarpsM, kWarpsN = Config::kWarpsN, kStages = Config::kStages;
};

// The configuration of the second product, with the members that StagedStore expects.
template <typename Config>
struct BackToBackSecond {
  static constexpr auto kStore = GemmStore::kEpilogue;
  static constexpr int kNeighbours = Config::kNeighbours;
};

template <typename Config, typename W1>
struct BackToBackTraits {
  using In = typename Config::In;
  using Instruction = Mma<In>;
  static constexpr int kThreads = 32 * Config::kWarpsM * Config::kWarpsN;
  static constexpr int kWarpM = Config::kTileM / Config::kWarpsM;
  static constexpr int kWarpN0 = Config::kColumns0 / Config::kWarpsN, kWarpN = Config::kTileN / Config::kWarpsN;
  static constexpr int kBlocksM = kWarpM / 16, kBlocksN0 = kWarpN0 / 8, kBlocksN = kWarpN / 8;
  static constexpr int kDepth = Instruction::kK;
  static constexpr int kSlice = back_to_back_slice(Config::kColumns0, sizeof(In));
  static constexpr int kSlices = Config::kColumns0 / kSlice, kSteps = kSlice / kDepth;
  using WeightTile = SwizzledTile<In, Config::kTileN, kSlice, cuda::OperandTraits<W1, In>::kMemoryAlongK>;
  using WeightLoader = cuda::TileLoader<W1, In, WeightTile, Config::kTileN, kSlice, kThreads>;
  using InnerTile = SwizzledTile<In, Config::kTileM, kSlice, true>;
  TILE_HD static constexpr BackToBackShared shared(int steps) {
    return back_to_back_shared({Config::kTileM, Config::kColumns0, Config::kTileK, Config::kTileN, Config::kWarpsM,
                                Config::kWarpsN, Config::kStages, Config::kInRegisters},
                               steps, sizeof(In));
  }
  static_assert(sizeof(In) == 2 && (Config::kWarpsN == 1 || !Config::kInRegisters));
  static_assert(is_power_of_two(kWarpM) && kWarpN % 16 == 0);
  static_assert(is_power_of_two(Config::kTileN) || WeightTile::kAlongK, "lines along rows are cut at powers of two");
};

// Requests all of W1. Its tiles are stored in the order [step][slice].
template <typename Traits, typename W1>
__device__ inline void load_weights(uint8_t* to, const W1& operand, int batch, int steps, int columns) {
  using Loader = typename Traits::WeightLoader;
#pragma unroll 1
  for (int step = 0; step < steps; ++step) {
    Loader loader(operand, batch, step * columns, 0);
#pragma unroll 1
    for (int slice = 0; slice < Traits::kSlices; ++slice, to += Traits::WeightTile::kBytes) {
      if constexpr (Loader::kAsync) {
        loader.copy(cuda::shared_address(to));
      } else {
        loader.fetch();
        loader.put(to);
      }
      loader.next();
    }
  }
}

// The left operand of the second product: the rows of D0 that belong to a warp.
template <typename Config, typename W1, bool InRegisters = Config::kInRegisters>
class InnerFragments {  // in registers: each warp has all columns
  using Traits = BackToBackTraits<Config, W1>;

 public:
  __device__ InnerFragments(uint8_t*, int, int) {}
  // Stores a rounded pair of accumulators. The pair belongs to block (i, j) and to row lane / 4 + 8 h of the block.
  __device__ void put(int i, int j, int h, uint32_t pair) { words_[i][j / 2][j % 2 * 2 + h] = pair; }
  __device__ void share() const {}
  __device__ void read(uint32_t (&a)[4], int i, int slice, int step) const {
#pragma unroll
    for (int w = 0; w < 4; ++w) a[w] = words_[i][slice * Traits::kSteps + step][w];
  }

 private:
  uint32_t words_[Traits::kBlocksM][Config::kColumns0 / 16][4];
};

template <typename Config, typename W1>
class InnerFragments<Config, W1, false> {  // in shared memory: one tile for each slice of columns
  using Traits = BackToBackTraits<Config, W1>;
  using Tile = typename Traits::InnerTile;

 public:
  __device__ InnerFragments(uint8_t* tiles, int warp_row, int warp_column)
      : tiles_(tiles), row_(warp_row), column_(warp_column), reader_(warp_row) {}
  __device__ void put(int i, int j, int h, uint32_t pair) const {
    const int lane = static_cast<int>(threadIdx.x) % 32, row = row_ + 16 * i + 8 * h + lane / 4;
    const int column = column_ + 8 * j + 2 * (lane % 4);
    *reinterpret_cast<uint32_t*>(tiles_ + column / Traits::kSlice * Tile::kBytes +
                                 Tile::place(row, column % Traits::kSlice)) = pair;
  }
  __device__ void share() const { __syncthreads(); }
  __device__ void read(uint32_t (&a)[4], int i, int slice, int step) const {
    reader_.read(a, tiles_, cuda::shared_address(tiles_) + slice * Tile::kBytes, i, step);
  }

 private:
  uint8_t* tiles_;
  int row_, column_;
  FragmentReader<typename Traits::In, Tile, Traits::kDepth, true, false> reader_;
};

// Converts the accumulators to D0, one pair at a time, and puts them into `inner`. Columns beyond the end of D0 are set
// to zero, even if A contains NaN or infinity. Rows beyond the end of D0 are undefined.
template <typename Traits, typename Inner, typename Between>
__device__ inline void hand_on(Inner& inner, const float (&acc)[Traits::kBlocksM][Traits::kBlocksN0][4],
                               const Between& between, const BackToBackArgs& args, int batch, int row, int column) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int j = 0; j < Traits::kBlocksN0; ++j) {
    const int col = column + 8 * j + 2 * (lane % 4), left = args.n0 - col;
#pragma unroll
    for (int i = 0; i < Traits::kBlocksM; ++i) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        float v[2] = {acc[i][j][2 * h], acc[i][j][2 * h + 1]};
        const int at = row + 16 * i + 8 * h + lane / 4;
        if (left > 0) between(v, batch, at < args.m ? at : args.m - 1, col, left < 2 ? left : 2);
        inner.put(i, j, h, cuda::pack<typename Traits::In>(left > 0 ? v[0] : 0.0f, left > 1 ? v[1] : 0.0f));
      }
    }
  }
}

// The kernel. It must be launched with BackToBackTraits<...>::kThreads threads and back_to_back_shared().total bytes of
// dynamic shared memory.
template <typename Config, typename A, typename W0, typename W1, typename Between, typename Epilogue>
__device__ inline void back_to_back(const BackToBackArgs& args, const A& operand_a, const W0& operand_w0,
                                    const W1& operand_w1, const Between& between, const Epilogue& epilogue) {
  using Traits = BackToBackTraits<Config, W1>;
  using First = BackToBackFirst<Config>;
  using FirstTraits = GemmTraits<First, A, W0>;
  extern __shared__ __align__(128) uint8_t raw_shared[];
  const auto block = static_cast<int32_t>(blockIdx.x);
  const int32_t batch = args.by_tiles.divide(block), m = (block - batch * args.tiles_m) * Config::kTileM;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int warp_m = warp / Config::kWarpsN * Traits::kWarpM, warp_n = warp % Config::kWarpsN;
  const BackToBackShared shared = Traits::shared(args.steps);
  uint8_t* weights = raw_shared + shared.weights;

  // The first product.
  load_weights<Traits>(weights, operand_w1, batch, args.steps, Config::kTileN);
  float acc[Traits::kBlocksM][Traits::kBlocksN0][4] = {};
  typename FirstTraits::LoaderA a(operand_a, batch, m, 0);
  typename FirstTraits::LoaderB w0(operand_w0, batch, 0, 0);
  GemmMainLoop<First, A, W0>(raw_shared, warp_m, warp_n * Traits::kWarpN0).run(acc, a, w0, args.k_tiles);

  InnerFragments<Config, W1> inner(raw_shared + shared.inner, warp_m, warp_n * Traits::kWarpN0);
  hand_on<Traits>(inner, acc, between, args, batch, m + warp_m, warp_n * Traits::kWarpN0);
  inner.share();

  // The second product, kTileN columns at a time.
  GemmArgs stored{};
  stored.m = args.m, stored.n = args.n1;
  const GemmUnit unit{m, 0, batch, 0, {0, 0}};
  cuda::StagedStore<BackToBackSecond<Config>, float, Traits::kWarpN> store(stored, unit, raw_shared + shared.staging,
                                                                           warp);
  using WeightTile = typename Traits::WeightTile;
  const FragmentReader<typename Traits::In, WeightTile, Traits::kDepth, WeightTile::kAlongK, true> reader(
      warp_n * Traits::kWarpN);
#pragma unroll 1
  for (int32_t step = 0; step < args.steps; ++step) {
    float sums[Traits::kBlocksM][Traits::kBlocksN][4] = {};
#pragma unroll
    for (int slice = 0; slice < Traits::kSlices; ++slice, weights += WeightTile::kBytes) {
#pragma unroll
      for (int k = 0; k < Traits::kSteps; ++k) {
        uint32_t b[Traits::kBlocksN][2], left[Traits::kBlocksM][4];
#pragma unroll
        for (int i = 0; i < Traits::kBlocksM; ++i) inner.read(left[i], i, slice, k);
#pragma unroll
        for (int j = 0; j < Traits::kBlocksN / 2; ++j) {
          uint32_t r[4];
          reader.read(r, weights, cuda::shared_address(weights), j, k);
#pragma unroll
          for (int w = 0; w < 4; ++w) b[2 * j + w / 2][w % 2] = r[w];
        }
#pragma unroll
        for (int i = 0; i < Traits::kBlocksM; ++i) {
#pragma unroll
          for (int j = 0; j < Traits::kBlocksN; ++j) Traits::Instruction::issue(sums[i][j], left[i], b[j]);
        }
      }
    }
    const int column = step * Config::kTileN + warp_n * Traits::kWarpN;
#pragma unroll
    for (int i = 0; i < Traits::kBlocksM; ++i) {
      store.template band<Traits::kBlocksN>(sums[i], epilogue, m + warp_m + 16 * i, column);
    }
  }
}

}  // namespace heddle::tile::sm80
