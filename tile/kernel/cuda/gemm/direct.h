// D = epilogue(A B) for products with only a few loads per lane. A lane loads its own operands (each load reads 16
// bytes of k, and all loads are issued at once) and stores its own results. Only the sums of warps that share a tile
// and divide k pass through shared memory. Few instructions precede the first load, which matters if a product takes no
// longer than its launch.
//
// k may be permuted if A and B use the same permutation. So of every 64 bytes of k, each of the four lanes of a
// fragment's row loads 16 contiguous bytes. The columns of D are also permuted among the lanes, so that a lane computes
// contiguous columns over all its instructions.
//
// A generated unit provides a configuration with named fields,
//
//   struct Config {
//     using In = tile::half;                         // operand type of sm80::Mma, as stored in memory
//     static constexpr int kBlocksM = 1, kBlocksN = 4;  // MMA blocks per warp, along rows (of 16) and columns (of 8)
//     static constexpr int kWarpsM = 1, kWarpsN = 2, kWarpsK = 2;  // warps per thread block
//     static constexpr int kChunks = 3;              // pieces of 64 bytes of k per warp
//     static constexpr bool kWholeK = true;          // k is exactly kWarpsK * kChunks pieces; otherwise it may be less
//   };
//
// and two operands and an epilogue. An operand has `MatrixLines<Element> lines(int batch)` along k; the address and the
// length of each line are multiples of 16 bytes. The epilogue stores D, as for gemm_reduce().
#pragma once

#include "tile/arch/sm80/mma.h"
#include "tile/arch/sm80/stream.h"
#include "tile/kernel/cuda/operand/fragment.h"
#include "tile/kernel/cuda/operand/operand.h"
#include "tile/kernel/cuda/row.h"

namespace heddle::tile::cuda {

inline constexpr int kDirectChunk = 64;  // the bytes of k in a piece

template <typename Config>
struct DirectTraits {
  using In = typename Config::In;
  using Instruction = sm80::Mma<In>;
  using Acc = typename Instruction::Acc;
  static constexpr int kBlocksM = Config::kBlocksM, kBlocksN = Config::kBlocksN, kChunks = Config::kChunks;
  static constexpr int kTiles = Config::kWarpsM * Config::kWarpsN, kThreads = 32 * kTiles * Config::kWarpsK;
  static constexpr int kTileM = 16 * kBlocksM * Config::kWarpsM, kTileN = 8 * kBlocksN * Config::kWarpsN;
  static constexpr bool kGathers = (kBlocksN & (kBlocksN - 1)) == 0;  // True if a lane's columns are contiguous.
  static constexpr int kSums = kBlocksM * kBlocksN * 4;               // accumulators per lane
  static constexpr int kSharedBytes = kTiles * (Config::kWarpsK - 1) * kSums * 32 * int(sizeof(Acc));
  static_assert(kBlocksN <= 4);
};

struct alignas(16) DirectWords {
  uint32_t x[4];
};

// Returns the address of byte `k` of line `line` of an operand. If there is no such line, uses the last line instead.
// The stride between lines is less than 2^31 bytes.
template <typename In>
__device__ inline const uint8_t* direct_line(const MatrixLines<In>& lines, int line, int k) {
  const int inside = line < lines.lines ? line : lines.lines - 1;
  const auto leading = static_cast<int32_t>(lines.leading) * int(sizeof(In));
  return reinterpret_cast<const uint8_t*>(lines.data) + k + static_cast<int64_t>(inside) * leading;
}

template <typename Config, typename A, typename B, typename Epilogue>
__device__ inline void gemm_direct(const A& operand_a, const B& operand_b, const Epilogue& epilogue) {
  using Traits = DirectTraits<Config>;
  using In = typename Config::In;
  using Acc = typename Traits::Acc;
  constexpr int kBlocksM = Traits::kBlocksM, kBlocksN = Traits::kBlocksN, kChunks = Traits::kChunks;
  constexpr int kWarpsK = Config::kWarpsK, kTiles = Traits::kTiles;
  extern __shared__ __align__(16) uint8_t raw_shared[];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, tile = warp % kTiles, warp_k = warp / kTiles;
  const int g = lane / 4, t = lane % 4, batch = static_cast<int>(blockIdx.z);
  const auto lines_a = operand_a.lines(batch);
  const auto lines_b = operand_b.lines(batch);
  const int row = static_cast<int>(blockIdx.y) * Traits::kTileM + tile / Config::kWarpsN * (16 * kBlocksM) + g;
  const int column = static_cast<int>(blockIdx.x) * Traits::kTileN + tile % Config::kWarpsN * (8 * kBlocksN);
  const int k = warp_k * (kChunks * kDirectChunk) + t * 16;
  const int left = lines_a.length * int(sizeof(In)) - k;  // the remaining bytes of k from the lane's first byte on
  const uint8_t *a[kBlocksM * 2], *b[kBlocksN];
#pragma unroll
  for (int i = 0; i < kBlocksM * 2; ++i) a[i] = direct_line(lines_a, row + 8 * i, k);
#pragma unroll
  for (int j = 0; j < kBlocksN; ++j) {
    const int at = Traits::kGathers ? g / 2 * (2 * kBlocksN) + 2 * j + g % 2 : 8 * j + g;
    b[j] = direct_line(lines_b, column + at, k);
  }
  DirectWords of_a[kChunks][kBlocksM * 2] = {}, of_b[kChunks][kBlocksN] = {};
#pragma unroll
  for (int c = 0; c < kChunks; ++c) {
    if (Config::kWholeK || c * kDirectChunk < left) {
#pragma unroll
      for (int i = 0; i < kBlocksM * 2; ++i) {
        of_a[c][i] = sm80::load_here(reinterpret_cast<const DirectWords*>(a[i] + c * kDirectChunk));
      }
#pragma unroll
      for (int j = 0; j < kBlocksN; ++j) {
        of_b[c][j] = sm80::load_here(reinterpret_cast<const DirectWords*>(b[j] + c * kDirectChunk));
      }
    }
  }
  Acc acc[kBlocksM][kBlocksN][4] = {};
#pragma unroll
  for (int c = 0; c < kChunks; ++c) {
#pragma unroll
    for (int i = 0; i < kBlocksM * 2; ++i) {
#pragma unroll
      for (int w = 0; w < 4; ++w) sm80::round_fragment<In>(of_a[c][i].x[w]);
    }
#pragma unroll
    for (int j = 0; j < kBlocksN; ++j) {
#pragma unroll
      for (int w = 0; w < 4; ++w) sm80::round_fragment<In>(of_b[c][j].x[w]);
#pragma unroll
      for (int step = 0; step < 4; step += 2) {
        const uint32_t right[2] = {of_b[c][j].x[step], of_b[c][j].x[step + 1]};
#pragma unroll
        for (int i = 0; i < kBlocksM; ++i) {
          const DirectWords &upper = of_a[c][2 * i], &lower = of_a[c][2 * i + 1];
          const uint32_t words[4] = {upper.x[step], lower.x[step], upper.x[step + 1], lower.x[step + 1]};
          Traits::Instruction::issue(acc[i][j], words, right);
        }
      }
    }
  }
  if constexpr (kWarpsK > 1) {
    // The sums of the other warps of a tile are stored as [part of k][sum][lane]; the first warp adds them in order.
    Acc* sums = reinterpret_cast<Acc*>(raw_shared) + tile * (Traits::kSums * 32) + lane;
    constexpr int kPart = kTiles * Traits::kSums * 32;
    if (warp_k > 0) {
#pragma unroll
      for (int i = 0; i < Traits::kSums; ++i)
        sums[(warp_k - 1) * kPart + i * 32] = acc[i / (4 * kBlocksN)][i / 4 % kBlocksN][i % 4];
    }
    __syncthreads();
    if (warp_k > 0) return;
#pragma unroll
    for (int part = 1; part < kWarpsK; ++part) {
#pragma unroll
      for (int i = 0; i < Traits::kSums; ++i)
        acc[i / (4 * kBlocksN)][i / 4 % kBlocksN][i % 4] += sums[(part - 1) * kPart + i * 32];
    }
  }
#pragma unroll
  for (int i = 0; i < kBlocksM * 2; ++i) {
    if (row + 8 * i >= lines_a.lines) continue;
    constexpr int kAtOnce = Traits::kGathers ? 2 * kBlocksN : 2;
#pragma unroll
    for (int j = 0; j < 2 * kBlocksN; j += kAtOnce) {
      const int at = column + (Traits::kGathers ? t * kAtOnce : 4 * j + 2 * t), n = lines_b.lines - at;
      if (n <= 0) continue;
      Acc v[kAtOnce];
#pragma unroll
      for (int x = 0; x < kAtOnce; ++x) v[x] = acc[i / 2][(j + x) / 2][i % 2 * 2 + x % 2];
      epilogue(v, batch, row + 8 * i, at, n < kAtOnce ? n : kAtOnce);
    }
  }
}

}  // namespace heddle::tile::cuda
