// D = epilogue(A B) on sm_80 and later: every warp multiplies a part of the block's tile by mma.sync, while cp.async
// fills a ring of tiles in shared memory ahead of it. Operands are views, so the same kernel multiplies matrices with
// any strides and convolutions of images, and reads operands that are converted or computed on the way.
//
// A generated unit gives a configuration with named fields,
//
//   struct Config {
//     using InA = tile::half, InB = tile::half;   // what is multiplied: any pair of sm80::Mma, of one size
//     using Out = tile::half;                     // element of D: how many columns the epilogue sees at once
//     static constexpr int kTileM = 128, kTileN = 128;
//     static constexpr int kTileK = 32;           // elements; 32, 64 or 128 bytes
//     static constexpr int kWarpsM = 2, kWarpsN = 2;   // a warp's part: 16, 32 or 64 rows; 16, 32, 64 or 128 columns
//     static constexpr int kStages = 4;           // at least 2
//     static constexpr auto kStore = tile::GemmStore::kEpilogue;   // or kPartial
//   };
//
// two operands, A with the rows of D, B with its columns as "rows",
//
//   struct OperandA {   // Matrix and Image of operand.h, or
//     using Element = tile::half;                 // in memory; other than InA: converted, through registers
//     __device__ auto view(int batch) const;      // TensorView<const Element, Chain> with dimensions [row][k]
//     // Optional prologue: v holds elements of `row` from k on (of k from `row` on where memory is contiguous along
//     // rows), all of them valid ones; what has no element is 0 and does not come here.
//     template <int W> __device__ void apply(float (&v)[W], int batch, int row, int k) const;
//   };
//   struct ComputedA {  // no view: v[0..n) become elements k .. k + n - 1 of `row`
//     static constexpr int kWidth = 8;            // W; W elements of InA are 1 to 16 bytes
//     __device__ int rows() const;
//     __device__ int depth() const;
//     template <int W> __device__ void load(float (&v)[W], int batch, int row, int k, int n) const;
//   };
//
// and the epilogue of gemm_sm90.h, called for W neighbours of a row of D. The fields of GemmArgs mean the same there,
// except that a block computes one unit of work: the grid is tiles_m * tiles_n * splits * batch along x.
#pragma once

#include "tile/arch/sm80/ldmatrix.h"
#include "tile/arch/sm80/mma.h"
#include "tile/core/cuda_gemm.h"
#include "tile/kernel/cuda/load.h"
#include "tile/kernel/cuda/store.h"

namespace heddle::tile::sm80 {

template <typename Config, typename A, typename B>
struct GemmTraits {
  using Instruction = Mma<typename Config::InA, typename Config::InB>;
  using Acc = typename Instruction::Acc;
  static constexpr int kTileM = Config::kTileM, kTileN = Config::kTileN, kTileK = Config::kTileK;
  static constexpr int kStages = Config::kStages, kThreads = 32 * Config::kWarpsM * Config::kWarpsN;
  static constexpr int kWarpM = kTileM / Config::kWarpsM, kWarpN = kTileN / Config::kWarpsN;
  static constexpr int kBlocksM = kWarpM / 16, kBlocksN = kWarpN / 8;  // instructions of a warp
  static constexpr int kSteps = kTileK / Instruction::kK;              // of them along k
  using LoaderA = cuda::TileLoader<A, typename Config::InA, kTileM, kTileK, kThreads>;
  using LoaderB = cuda::TileLoader<B, typename Config::InB, kTileN, kTileK, kThreads>;
  static constexpr int kStageBytes = LoaderA::Tile::kBytes + LoaderB::Tile::kBytes;
  static constexpr int kSharedBytes = gemm_sm80_shared_bytes(kTileM, kTileN, kTileK* int(sizeof(typename Config::InA)),
                                                             kStages, Config::kWarpsM, Config::kWarpsN);
  static_assert(sizeof(typename Config::InA) == sizeof(typename Config::InB));
  static_assert(is_power_of_two(kWarpM) && kWarpM >= 16 && is_power_of_two(kWarpN) && kWarpN >= 16);
  static_assert(kTileK % Instruction::kK == 0 && kStages >= 2);
};

// What a warp multiplies in one step.
template <typename Traits>
struct Fragments {
  uint32_t a[Traits::kBlocksM][4];
  uint32_t b[Traits::kBlocksN][2];
};

// Where a warp finds its fragments of one operand in a tile. Blocks of 16 rows; `IsB`: the two halves of a block are
// the blocks of 8 columns of two instructions.
template <typename In, typename Tile, int Depth, bool AlongK, bool IsB>
class FragmentReader {
 public:
  __device__ explicit FragmentReader(int first) {
    const int lane = threadIdx.x % 32;
    if constexpr (kMatrices) {
      const int half = lane / 8 % 2 * 8, other = lane / 16;
      const int row = first + lane % 8, k = 0;
      // Matrix 1 lies 8 rows further for A, half of the instruction's k further for B; matrix 2 the other way round.
      const int rows_on = IsB ? other * 8 : half, k_on = (IsB ? half / 8 : other) * (Depth / 2);
      at_ = AlongK ? Tile::place(row + rows_on, k + k_on) : Tile::place(first + rows_on, lane % 8 + k_on);
    } else {
      at_ = Tile::place(first + lane / 4, lane % 4);
    }
  }

  // Block `block` of step `step` of the tile at `tile` (a shared address; for 32-bit elements along rows a pointer).
  __device__ void read(uint32_t (&r)[4], const uint8_t* raw, uint32_t tile, int block, int step) const {
    if constexpr (kMatrices) {
      load_matrices<!AlongK>(r, tile + place(at_, block, step));
    } else {
      // Rows 8 further are 32 bytes, k 4 further are 4 lines.
      const auto word = [&](int rows_on, int k_on) {
        return *reinterpret_cast<const uint32_t*>(raw + (place(at_, block, step) ^ rows_on * 32) + k_on * Tile::kPitch);
      };
      r[0] = word(0, 0);
      r[1] = IsB ? word(0, 4) : word(1, 0);
      r[2] = IsB ? word(1, 0) : word(0, 4);
      r[3] = word(1, 4);
    }
  }

 private:
  static constexpr bool kMatrices = AlongK || sizeof(In) == 2;

  // Steps and blocks change bits that the lane's part has at zero, so that xor adds below the swizzle.
  __device__ static uint32_t place(uint32_t at, int block, int step) {
    if constexpr (AlongK) {
      return (at ^ static_cast<uint32_t>(step * 32)) + block * 16 * Tile::kPitch;
    } else {
      constexpr int kBlock = 16 * sizeof(In);
      return (at ^ static_cast<uint32_t>(block * kBlock % Tile::kPitch)) +
             block * kBlock / Tile::kPitch * Tile::kStripBytes + step * Depth * Tile::kPitch;
    }
  }

  uint32_t at_;
};

// 32-bit operands are rounded as they are read; others already are what the instruction reads.
template <typename In>
__device__ inline void round_fragment(uint32_t& r) {
  if constexpr (is_same<In, cuda::tf32>) {
    r = __float_as_uint(cuda::from_float<cuda::tf32>(__uint_as_float(r)).value);
  }
}

template <typename Config, typename A, typename B>
class GemmMainLoop {
 public:
  using Traits = GemmTraits<Config, A, B>;
  using Acc = typename Traits::Acc;
  using LoaderA = typename Traits::LoaderA;
  using LoaderB = typename Traits::LoaderB;
  using Accumulators = Acc[Traits::kBlocksM][Traits::kBlocksN][4];

  __device__ GemmMainLoop(uint8_t* shared, int warp_row, int warp_column)
      : shared_(shared), address_(cuda::shared_address(shared)), a_(warp_row), b_(warp_column) {}

  // acc += A B over `count` tiles of k. Leaves the ring unused.
  __device__ void run(Accumulators& acc, LoaderA& a, LoaderB& b, int32_t count) {
    constexpr int kAhead = Traits::kStages - 1;
#pragma unroll 1
    for (int stage = 0; stage < kAhead; ++stage) {
      begin_load(a, b, stage, stage < count);
      end_load(a, b, stage, stage < count);
    }
    wait_copies<Traits::kStages - 2>();
    __syncthreads();
    Fragments<Traits> fragments[2];
    int32_t read = 0, write = kAhead;
    load_fragments(fragments[0], read, 0);
#pragma unroll 1
    for (int32_t tile = 0; tile < count; ++tile) {
      const bool more = tile + kAhead < count;
#pragma unroll
      for (int step = 0; step < Traits::kSteps; ++step) {
        const bool last = step == Traits::kSteps - 1;
        if (step == 0) begin_load(a, b, write, more);
        if (last) {
          // The stage that was read before this one is free since the last barrier; the next one is complete now.
          end_load(a, b, write, more);
          wait_copies<Traits::kStages - 2>();
          __syncthreads();
          read = read + 1 == Traits::kStages ? 0 : read + 1;
          write = write + 1 == Traits::kStages ? 0 : write + 1;
        }
        load_fragments(fragments[(step + 1) % 2], read, last ? 0 : step + 1);
        multiply(acc, fragments[step % 2]);
      }
      if constexpr (Traits::kSteps % 2 == 1) fragments[0] = fragments[1];
    }
    wait_copies<0>();
    __syncthreads();
  }

 private:
  using TileA = typename LoaderA::Tile;
  using TileB = typename LoaderB::Tile;
  using InA = typename Config::InA;
  using InB = typename Config::InB;
  static constexpr int kDepth = Traits::Instruction::kK;

  template <typename Loader>
  __device__ static void begin_load(Loader& loader, uint32_t to) {
    if constexpr (Loader::kAsync) {
      loader.copy(to);
    } else {
      loader.fetch();
    }
    loader.next();
  }
  __device__ void begin_load(LoaderA& a, LoaderB& b, int32_t stage, bool more) {
    if (more) {
      begin_load(a, address_ + stage * Traits::kStageBytes);
      begin_load(b, address_ + stage * Traits::kStageBytes + TileA::kBytes);
    }
    commit_copies();
  }
  __device__ void end_load(LoaderA& a, LoaderB& b, int32_t stage, bool more) {
    if constexpr (!LoaderA::kAsync) {
      if (more) a.put(shared_ + stage * Traits::kStageBytes);
    }
    if constexpr (!LoaderB::kAsync) {
      if (more) b.put(shared_ + stage * Traits::kStageBytes + TileA::kBytes);
    }
  }

  __device__ void load_fragments(Fragments<Traits>& f, int32_t stage, int step) const {
    const uint32_t at = stage * Traits::kStageBytes;
#pragma unroll
    for (int i = 0; i < Traits::kBlocksM; ++i) {
      a_.read(f.a[i], shared_ + at, address_ + at, i, step);
#pragma unroll
      for (int j = 0; j < 4; ++j) round_fragment<InA>(f.a[i][j]);
    }
#pragma unroll
    for (int i = 0; i < Traits::kBlocksN / 2; ++i) {
      uint32_t r[4];
      b_.read(r, shared_ + at + TileA::kBytes, address_ + at + TileA::kBytes, i, step);
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        round_fragment<InB>(r[j]);
        f.b[2 * i + j / 2][j % 2] = r[j];
      }
    }
  }

  __device__ static void multiply(Accumulators& acc, const Fragments<Traits>& f) {
#pragma unroll
    for (int i = 0; i < Traits::kBlocksM; ++i) {
#pragma unroll
      for (int j = 0; j < Traits::kBlocksN; ++j) {
        const int column = i % 2 == 0 ? j : Traits::kBlocksN - 1 - j;  // back and forth: one operand stays
        Traits::Instruction::issue(acc[i][column], f.a[i], f.b[column]);
      }
    }
  }

  uint8_t* shared_;
  uint32_t address_;
  FragmentReader<InA, TileA, kDepth, TileA::kAlongK, false> a_;
  FragmentReader<InB, TileB, kDepth, TileB::kAlongK, true> b_;
};

// The kernel. Launched with GemmTraits<...>::kThreads threads, kSharedBytes of dynamic shared memory.
template <typename Config, typename A, typename B, typename Epilogue>
__device__ inline void gemm(const GemmArgs& args, const A& operand_a, const B& operand_b, const Epilogue& epilogue) {
  using Traits = GemmTraits<Config, A, B>;
  extern __shared__ __align__(128) uint8_t raw_shared[];

  // Partition: this block's tile and part of k, this warp's part of the tile.
  const GemmUnit unit = gemm_unit(args, static_cast<int32_t>(blockIdx.x), Config::kTileM, Config::kTileN);
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int warp_row = warp / Config::kWarpsN * Traits::kWarpM, warp_column = warp % Config::kWarpsN * Traits::kWarpN;

  // Main loop.
  typename Traits::Acc acc[Traits::kBlocksM][Traits::kBlocksN][4] = {};
  typename Traits::LoaderA a(operand_a, unit.batch, unit.m, unit.k.first * Config::kTileK);
  typename Traits::LoaderB b(operand_b, unit.batch, unit.n, unit.k.first * Config::kTileK);
  GemmMainLoop<Config, A, B>(raw_shared, warp_row, warp_column).run(acc, a, b, unit.k.last - unit.k.first);

  // Epilogue, a band of 16 rows of each warp at a time.
  cuda::StagedStore<Config, typename Traits::Acc, Traits::kWarpN> store(args, unit, raw_shared, warp);
#pragma unroll
  for (int i = 0; i < Traits::kBlocksM; ++i) {
    store.template band<Traits::kBlocksN>(acc[i], epilogue, unit.m + warp_row + 16 * i, unit.n + warp_column);
  }
}

}  // namespace heddle::tile::sm80
