// Tiles of attention's operands in shared memory, and the layout of shared memory. For sm90.h.
#pragma once

#include "tile/arch/cuda/builtins.h"
#include "tile/arch/sm90/barrier.h"
#include "tile/arch/sm90/tma.h"
#include "tile/arch/sm90/wgmma_registers.h"
#include "tile/core/cuda_attention.h"

namespace heddle::tile::sm90 {

// An operand of wgmma with `Rows` rows (or columns). `Depth` is its number of elements along the summed dimension.
template <int Rows, int Depth, bool AlongDepth>
struct AttentionTile {
  static constexpr AttentionPieces kPieces = attention_pieces(Rows, Depth, AlongDepth);

  // Loads the tile that begins at row `row` and depth element `at`.
  __device__ static void load(const TensorMap& map, Barrier& full, uint8_t* to, int32_t row, int32_t at, int32_t inner,
                              int32_t outer) {
    constexpr int kLines = attention_box_lines(kPieces.rows);
#pragma unroll
    for (int i = 0; i < kPieces.count; ++i) {
#pragma unroll
      for (int line = 0; line < kPieces.rows; line += kLines) {
        load_box(map, full, to + i * kPieces.piece_bytes() + line * kGemmRowBytes, (AlongDepth ? at : row) + 64 * i,
                 (AlongDepth ? row : at) + line, inner, outer, CacheHint::kEvictNormal);
      }
    }
  }
  // Returns the matrix descriptor of the part of the operand that begins at depth element 16 * step. `at` is the
  // address of the tile in shared memory.
  __device__ static uint64_t operand(uint32_t at, int step) {
    if constexpr (!AlongDepth) {
      return make_smem_descriptor(at, false, kPieces.piece_bytes()) + step * ((16 * kGemmRowBytes) >> 4);
    } else if constexpr (kPieces.count > 2) {  // one addition per step, relative to the first piece
      return make_smem_descriptor(at, true, 0) + (((step / 4) * kPieces.piece_bytes() + (step % 4) * 32) >> 4);
    } else {
      return make_smem_descriptor(at + (step / 4) * kPieces.piece_bytes(), true, 0) + (step % 4) * (32 >> 4);
    }
  }
};

template <typename Config>
struct AttentionTraits {
  static constexpr int kConsumers = Config::kConsumers, kTileM = kAttentionGroupRows * kConsumers,
                       kTileN = Config::kTileN;
  static constexpr int kThreads = 128 * (kConsumers + 1);
  static constexpr int kStages = Config::kStages, kQStages = Config::kQStages;
  using Q = AttentionTile<kTileM, Config::kDepth, true>;
  using K = AttentionTile<kTileN, Config::kDepth, Config::kKAlongDepth>;
  using V = AttentionTile<Config::kWidth, kTileN, !Config::kVAlongWidth>;
  static constexpr int kQBytes = attention_q_bytes(kTileM, Config::kDepth, Config::kWidth);
  static constexpr int kKBytes = K::kPieces.bytes(), kVBytes = V::kPieces.bytes();
  // For wide heads, O is scaled while the next product with keys runs. This needs fewer registers than scaling it after
  // the softmax, when the product with the values has completed.
  static constexpr bool kScalesFirst = Config::kWidth > 128;
  // True for wide heads: values of a unit are kept in uniform registers (of_warp() in sm90.h). Wide heads have many
  // matrix descriptors, which would otherwise occupy ordinary registers across tiles. Uniform registers delay the start
  // of a unit. Narrower heads, whose units may also be short, do not gain this time back.
  static constexpr bool kUniform = Config::kDepth > 128 || Config::kWidth > 128;
  static_assert(kTileN % 16 == 0 && Config::kDepth % 16 == 0 && Config::kWidth % 16 == 0);
  static_assert(sizeof(typename Config::In) == 2);
};

template <typename Config>
struct AttentionShared {
  using Traits = AttentionTraits<Config>;
  uint8_t* q;
  uint8_t* k;
  uint8_t* v;
  AttentionUnit* units;  // one for each of Q's buffers
  int32_t* told;         // for each warpgroup: the number of parts that were finished before its own part
  Barrier *q_full, *q_empty, *k_full, *k_empty, *v_full, *v_empty;

  __device__ explicit AttentionShared(uint8_t* raw) {
    q = raw + (-shared_address(raw) & 1023);
    k = q + Traits::kQStages * Traits::kQBytes;
    v = k + Traits::kStages * Traits::kKBytes;
    units = reinterpret_cast<AttentionUnit*>(v + Traits::kStages * Traits::kVBytes);
    told = reinterpret_cast<int32_t*>(units + Traits::kQStages);
    q_full = reinterpret_cast<Barrier*>(told + 4);
    q_empty = q_full + Traits::kQStages;
    k_full = q_empty + Traits::kQStages;
    k_empty = k_full + Traits::kStages;
    v_full = k_empty + Traits::kStages;
    v_empty = v_full + Traits::kStages;
  }
  __device__ void init() const {
    for (int i = 0; i < Traits::kQStages; ++i) {
      q_full[i].init(1);
      q_empty[i].init(4 * Traits::kConsumers);  // one arrival per warp
    }
    for (int i = 0; i < Traits::kStages; ++i) {
      k_full[i].init(1);
      v_full[i].init(1);
      k_empty[i].init(Traits::kConsumers);
      v_empty[i].init(Traits::kConsumers);
    }
    fence_barrier_init();
  }
};

}  // namespace heddle::tile::sm90
