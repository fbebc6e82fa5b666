// D = epilogue(A B) on AMD GPUs: by MFMA in waves of 64 lanes, by WMMA in waves of 32. The tiles of the next step of k
// are loaded to registers while the current ones are multiplied from LDS.
//
// Config, operands, epilogue and GemmArgs are those of tile/kernel/cuda/gemm/simt.h, with In = half, bfloat or,
// for MFMA, float, double or int8_t.
// A wave's part of the tile has 16, 32 or 64 rows and columns. Typical sizes are
//
//   kTileM = 128, kTileN = 128, kTileK = 32, kWarpsM = 2, kWarpsN = 2, kStages = 2
#pragma once

#include "tile/core/cuda_gemm.h"
#include "tile/kernel/cuda/gemm/fragments_to_rows.h"
#include "tile/kernel/cuda/operand/ring.h"
#include "tile/kernel/hip/row_tile.h"

namespace heddle::tile::cuda {

template <typename Config, typename A, typename B>
struct MfmaTraits {
  using In = typename Config::In;
  using Instruction = WaveProduct<In>;
  using Piece = typename Instruction::Piece;
  using Sum = typename Instruction::Sum;
  static constexpr int kTileM = Config::kTileM, kTileN = Config::kTileN, kTileK = Config::kTileK;
  static constexpr int kThreads = Instruction::kLanes * Config::kWarpsM * Config::kWarpsN;
  static constexpr int kWarpM = kTileM / Config::kWarpsM, kWarpN = kTileN / Config::kWarpsN;
  static constexpr int kBlocksM = kWarpM / 16, kBlocksN = kWarpN / 16;  // of 16 x 16 sums
  // A lane loads at least 16 bytes of a row at once. They may be its operands of several instructions, so that an
  // instruction has other elements of k than its lanes stand for, the same ones of A and of B.
  static constexpr int kPieces = sizeof(Piece) < 16 ? 16 / sizeof(Piece) : 1, kLoadK = kPieces * Instruction::kK;
  using LoaderA = TileLoader<A, In, RowTile<In, kTileM, kTileK>, kTileM, kTileK, kThreads>;
  using LoaderB = TileLoader<B, In, RowTile<In, kTileN, kTileK>, kTileN, kTileK, kThreads>;
  static constexpr int kSharedBytes =
      gemm_mfma_shared_bytes(kTileM, kTileN, kTileK* static_cast<int>(sizeof(In)), Config::kStages);
  static_assert(kWarpM % 16 == 0 && kWarpN % 16 == 0 && kTileK % kLoadK == 0);
};

// The kernel. Launched with MfmaTraits<...>::kThreads threads and kSharedBytes of dynamic LDS.
template <typename Config, typename A, typename B, typename Epilogue>
__device__ inline void gemm_mfma(const GemmArgs& args, const A& operand_a, const B& operand_b,
                                 const Epilogue& epilogue) {
  using Traits = MfmaTraits<Config, A, B>;
  using Instruction = typename Traits::Instruction;
  using LoaderA = typename Traits::LoaderA;
  using LoaderB = typename Traits::LoaderB;
  struct alignas(16) Pieces {
    typename Traits::Piece x[Traits::kPieces];
  };
  constexpr int kM = Traits::kBlocksM, kN = Traits::kBlocksN, kNeighbours = Instruction::kSums;
  extern __shared__ __align__(16) uint8_t raw_shared[];

  // Partition: this block's tile and part of k, and the wave's part of the tile.
  const GemmUnit unit = gemm_unit(args, static_cast<int32_t>(blockIdx.x), Config::kTileM, Config::kTileN);
  const int wave = static_cast<int>(threadIdx.x) / Instruction::kLanes;
  const int lane = static_cast<int>(threadIdx.x) % Instruction::kLanes;
  const int wave_row = wave / Config::kWarpsN * Traits::kWarpM;
  const int wave_column = wave % Config::kWarpsN * Traits::kWarpN;
  const int line = lane % 16, line_of_b = Instruction::row_of(line), group = lane / 16;

  // Main loop. The columns of D are the rows of the instruction's result, so that a lane has neighbours of a row of D.
  typename Traits::Sum acc[kM][kN][kNeighbours] = {};
  LoaderA load_a(operand_a, unit.batch, unit.m, unit.k.first * Config::kTileK);
  LoaderB load_b(operand_b, unit.batch, unit.n, unit.k.first * Config::kTileK);
  const int32_t count = unit.k.last - unit.k.first;
  Ring<Config::kStages, LoaderA, LoaderB> ring(raw_shared, load_a, load_b, count);
  const auto pieces = [&](uint32_t tile, uint32_t place) __attribute__((always_inline)) {
    return *reinterpret_cast<const Pieces*>(raw_shared + tile + place);
  };
#pragma unroll 1
  for (int32_t tile = 0; tile < count; ++tile) {
    ring.begin_load();
    const uint32_t stage = ring.current();
#pragma unroll
    for (int k = 0; k < Config::kTileK; k += Traits::kLoadK) {
      const int own = k + group % Instruction::kParts * Traits::kPieces * Instruction::kLane;
      Pieces a[kM], b[kN];
#pragma unroll
      for (int i = 0; i < kM; ++i) a[i] = pieces(stage, LoaderA::Tile::place(wave_row + 16 * i + line, own));
#pragma unroll
      for (int j = 0; j < kN; ++j) {
        b[j] = pieces(stage + LoaderA::Tile::kBytes, LoaderB::Tile::place(wave_column + 16 * j + line_of_b, own));
      }
#pragma unroll
      for (int p = 0; p < Traits::kPieces; ++p) {
#pragma unroll
        for (int i = 0; i < kM; ++i) {
#pragma unroll
          for (int j = 0; j < kN; ++j) Instruction::issue(acc[i][j], b[j].x[p], a[i].x[p]);
        }
      }
    }
    ring.step();
  }
  ring.drain();

  // Epilogue: a lane's neighbouring columns of a block at a time.
  auto* partial =
      static_cast<typename Traits::Sum*>(args.partial) + unit.batch * args.p_batch + unit.split * args.p_split;
#pragma unroll
  for (int i = 0; i < kM; ++i) {
    const int m = unit.m + wave_row + 16 * i + line;
    if (m >= args.m) continue;
#pragma unroll
    for (int j = 0; j < kN; ++j) {
      const int n = unit.n + wave_column + 16 * j + kNeighbours * group;
      const int valid = args.n - n < kNeighbours ? args.n - n : kNeighbours;
      if (valid <= 0) continue;
      if constexpr (Config::kStore == GemmStore::kPartial) {
        store_row<16 / sizeof(typename Traits::Sum)>(partial + m * args.p_row + n, acc[i][j], valid);
      } else {
        epilogue(acc[i][j], unit.batch, m, n, valid);
      }
    }
  }
}

}  // namespace heddle::tile::cuda
