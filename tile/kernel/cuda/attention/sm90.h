// O = softmax(scores(Q K^T)) V on sm_90a without the scores ever leaving registers: one thread brings tiles of Q and a
// ring of tiles of K and V to shared memory, each of the other warpgroups has 64 rows of Q. It multiplies them with a
// tile of keys (wgmma), keeps a running maximum and sum of each row, and multiplies what becomes of the scores, as they
// lie in registers, with V; the product with the next keys runs beside the exponentials of these. Blocks stay and walk
// over (batch, tile of rows), so that the ring is full when they begin the next one.
//
// A generated unit gives a configuration with named fields,
//
//   struct Config {
//     using In = tile::half;                       // or bfloat: Q, K, V and O
//     static constexpr int kConsumers = 2;         // warpgroups that multiply: 64 rows of Q each
//     static constexpr int kTileN = 128;           // keys of a tile, a multiple of 16
//     static constexpr int kDepth = 64, kWidth = 64;  // of Q and K, of V and O: rounded up to multiples of 16
//     static constexpr int kStages = 2, kQStages = 2;
//     static constexpr bool kKAlongDepth = true;   // K is contiguous along its depth, else along keys
//     static constexpr bool kVAlongWidth = true;   // V is contiguous along its width, else along keys
//     static constexpr bool kScaled = true;        // scores are products times a constant, which is in args.scale
//     static constexpr bool kOneTile = false;      // n <= kTileN
//     static constexpr bool kZeroIfEmpty = false;  // rows whose scores are all minus infinity give 0, else NaN
//   };
//
// a functor for the scores (not used with kScaled) and an epilogue that stores rows of O:
//
//   scores(v, batch, row, col, n)      float v[2]: products of a row of Q with n <= 2 keys from `col` on; becomes
//   scores epilogue(v, batch, row, col, n)    float v[8]: n elements of a row of O
#pragma once

#include "tile/arch/cuda/builtins.h"
#include "tile/arch/sm80/approx.h"
#include "tile/arch/sm90/barrier.h"
#include "tile/arch/sm90/convert.h"
#include "tile/arch/sm90/tma.h"
#include "tile/arch/sm90/wgmma_registers.h"
#include "tile/core/cuda_attention.h"
#include "tile/kernel/cuda/gemm/tile_scheduler.h"

namespace heddle::tile::sm90 {

// An operand of wgmma with `Rows` rows (or columns) of `Depth` elements that are summed over.
template <int Rows, int Depth, bool AlongDepth>
struct AttentionTile {
  static constexpr AttentionPieces kPieces = attention_pieces(Rows, Depth, AlongDepth);

  // From row `row` and element `at` of the depth on.
  __device__ static void load(const TensorMap& map, Barrier& full, uint8_t* to, int32_t row, int32_t at, int32_t inner,
                              int32_t outer) {
#pragma unroll
    for (int i = 0; i < kPieces.count; ++i) {
      load_box(map, full, to + i * kPieces.piece_bytes(), (AlongDepth ? at : row) + 64 * i, AlongDepth ? row : at,
               inner, outer, CacheHint::kEvictNormal);
    }
  }
  // The operand from row `row` (a multiple of 8) and 16 * step of the depth on.
  __device__ static uint64_t operand(uint32_t at, int row, int step) {
    if constexpr (AlongDepth) {
      return make_smem_descriptor(at + (step / 4) * kPieces.piece_bytes() + row * kGemmRowBytes, true, 0) +
             (step % 4) * (32 >> 4);
    } else {
      return make_smem_descriptor(at, false, kPieces.piece_bytes()) + step * ((16 * kGemmRowBytes) >> 4);
    }
  }
};

template <typename Config>
struct AttentionTraits {
  static constexpr int kConsumers = Config::kConsumers, kTileM = 64 * kConsumers, kTileN = Config::kTileN;
  static constexpr int kThreads = 128 * (kConsumers + 1);
  static constexpr int kStages = Config::kStages, kQStages = Config::kQStages;
  using Q = AttentionTile<kTileM, Config::kDepth, true>;
  using K = AttentionTile<kTileN, Config::kDepth, Config::kKAlongDepth>;
  using V = AttentionTile<Config::kWidth, kTileN, !Config::kVAlongWidth>;
  static constexpr int kQBytes = attention_q_bytes(kTileM, Config::kDepth, Config::kWidth);
  static constexpr int kKBytes = K::kPieces.bytes(), kVBytes = V::kPieces.bytes();
  static_assert(kTileN % 16 == 0 && Config::kDepth % 16 == 0 && Config::kWidth % 16 == 0);
  static_assert(sizeof(typename Config::In) == 2);
};

template <typename Config>
struct AttentionShared {
  using Traits = AttentionTraits<Config>;
  uint8_t* q;
  uint8_t* k;
  uint8_t* v;
  Barrier *q_full, *q_empty, *k_full, *k_empty, *v_full, *v_empty;

  __device__ explicit AttentionShared(uint8_t* raw) {
    q = raw + (-shared_address(raw) & 1023);
    k = q + Traits::kQStages * Traits::kQBytes;
    v = k + Traits::kStages * Traits::kKBytes;
    q_full = reinterpret_cast<Barrier*>(v + Traits::kStages * Traits::kVBytes);
    q_empty = q_full + Traits::kQStages;
    k_full = q_empty + Traits::kQStages;
    k_empty = k_full + Traits::kStages;
    v_full = k_empty + Traits::kStages;
    v_empty = v_full + Traits::kStages;
  }
  __device__ void init() const {
    for (int i = 0; i < Traits::kQStages; ++i) {
      q_full[i].init(1);
      q_empty[i].init(4 * Traits::kConsumers);  // every warp
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

// The scores of a warpgroup's 64 rows (as Wgmma has them), O, and the scores as an operand.
template <typename Config>
struct AttentionRegisters {
  float s[Config::kTileN / 2];
  float o[Config::kWidth / 2];
  uint32_t p[Config::kTileN / 16][4];
  float max[2], sum[2];  // of the thread's two rows: maximum of all scores so far; sum of the thread's own columns
};

// A tile, for a batch, from row `row` and element `at` of the depth on.
template <typename Tile>
__device__ inline void load_tile(const TensorMap& map, const AttentionPlace& place, Barrier& full, uint8_t* to,
                                 int32_t batch, int32_t row, int32_t at) {
  const int32_t own = place.by_shared.divide(batch);
  const int32_t outer = place.by_inner.divide(own), inner = own - outer * place.inner;
  full.arrive_expect(Tile::kPieces.bytes());
  Tile::load(map, full, to, row, at, inner * place.inner_step, outer * place.outer_step);
}

// One thread fills Q's buffers and the rings.
template <typename Config>
__device__ inline void load_tiles(const TensorMap& map_q, const TensorMap& map_k, const TensorMap& map_v,
                                  const AttentionArgs& args, const AttentionShared<Config>& shared) {
  using Traits = AttentionTraits<Config>;
  PipelineState<Traits::kQStages> at_q;
  PipelineState<Traits::kStages> at;
  for (auto unit = static_cast<int32_t>(blockIdx.x); unit < args.units; unit += static_cast<int32_t>(gridDim.x)) {
    const int32_t batch = args.by_tiles.divide(unit), row = (unit - batch * args.tiles_m) * Traits::kTileM;
    shared.q_empty[at_q.stage].wait(at_q.phase ^ 1);
    load_tile<typename Traits::Q>(map_q, args.q, shared.q_full[at_q.stage], shared.q + at_q.stage * Traits::kQBytes,
                                  batch, row, 0);
    at_q.step();
    for (int32_t tile = 0; tile < args.key_tiles; ++tile, at.step()) {
      const int32_t key = tile * Traits::kTileN;
      shared.k_empty[at.stage].wait(at.phase ^ 1);
      load_tile<typename Traits::K>(map_k, args.k, shared.k_full[at.stage], shared.k + at.stage * Traits::kKBytes,
                                    batch, key, 0);
      shared.v_empty[at.stage].wait(at.phase ^ 1);
      load_tile<typename Traits::V>(map_v, args.v, shared.v_full[at.stage], shared.v + at.stage * Traits::kVBytes,
                                    batch, 0, key);
    }
  }
}

template <typename Config>
__device__ inline void multiply_keys(AttentionRegisters<Config>& r, uint32_t q, uint32_t k, int group) {
  using Traits = AttentionTraits<Config>;
#pragma unroll
  for (int step = 0; step < Config::kDepth / 16; ++step) {
    Wgmma<typename Config::In, Config::kTileN>::template issue<false, !Config::kKAlongDepth>(
        r.s, Traits::Q::operand(q, 64 * group, step), Traits::K::operand(k, 0, step), step != 0);
  }
  wgmma_commit();
}

template <typename Config>
__device__ inline void multiply_values(AttentionRegisters<Config>& r, uint32_t v, bool first) {
  using Traits = AttentionTraits<Config>;
#pragma unroll
  for (int step = 0; step < Config::kTileN / 16; ++step) {
    WgmmaRegisters<typename Config::In, Config::kWidth>::template issue<Config::kVAlongWidth>(
        r.o, r.p[step], Traits::V::operand(v, 0, step), !first || step != 0);
  }
  wgmma_commit();
}

// Scores of products, for a thread's rows `row` and `row` + 8 and the tile's columns from `col` on. `Inside`: there are
// that many keys.
template <bool Inside, typename Config, typename Scores>
__device__ inline void apply_scores(AttentionRegisters<Config>& r, const AttentionArgs& args, const Scores& scores,
                                    int32_t batch, int32_t row, int32_t col) {
  const int32_t first = col + 2 * static_cast<int32_t>(threadIdx.x % 4), last = args.m - 1;
#pragma unroll
  for (int j = 0; j < Config::kTileN / 8; ++j) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {  // both read the same operands that vary with the key
      const int32_t at = first + 8 * j, valid = Inside || args.n - at > 2 ? 2 : args.n - at;
      if (valid <= 0) continue;
      float v[2] = {r.s[4 * j + 2 * h], r.s[4 * j + 2 * h + 1]};
      scores(v, batch, row + 8 * h < last ? row + 8 * h : last, at, valid);
      r.s[4 * j + 2 * h] = v[0];
      r.s[4 * j + 2 * h + 1] = v[1];
    }
  }
}

// The same, and minus infinity behind the last key.
template <typename Config, typename Scores>
__device__ inline void finish_scores(AttentionRegisters<Config>& r, const AttentionArgs& args, const Scores& scores,
                                     int32_t batch, int32_t row, int32_t col) {
  const bool inside = col + Config::kTileN <= args.n;
  if constexpr (!Config::kScaled) {
    if (inside) {
      apply_scores<true>(r, args, scores, batch, row, col);
    } else {
      apply_scores<false>(r, args, scores, batch, row, col);
    }
  }
  if (inside) return;
  const int32_t first = col + 2 * static_cast<int32_t>(threadIdx.x % 4);
#pragma unroll
  for (int i = 0; i < Config::kTileN / 2; ++i) {
    if (first + 8 * (i / 4) + i % 2 >= args.n) r.s[i] = -__builtin_inff();
  }
}

// Scores become exp(score - maximum); `fade` is what sums over earlier keys are to be multiplied by. Four chains of
// maxima and sums: a warpgroup has one warp a scheduler.
template <typename Config>
__device__ inline void exponentiate(AttentionRegisters<Config>& r, float scale, float (&fade)[2]) {
  float top[4] = {r.s[0], r.s[1], r.s[2], r.s[3]}, base[2], shift[2], sum[4] = {0, 0, 0, 0};
#pragma unroll
  for (int i = 4; i < Config::kTileN / 2; ++i) top[i % 4] = fmaxf(top[i % 4], r.s[i]);
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    float most = fmaxf(top[2 * h], top[2 * h + 1]);
    most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, 1));
    most = fmaxf(fmaxf(most, __shfl_xor_sync(0xffffffffu, most, 2)), r.max[h]);
    // A row of which all scores are minus infinity so far: their exponentials are 0, not NaN.
    base[h] = most == -__builtin_inff() ? 0.0f : most;
    shift[h] = base[h] * scale;
    fade[h] = cuda::exp2_approx((r.max[h] - base[h]) * scale);
    r.max[h] = most;
  }
#pragma unroll
  for (int i = 0; i < Config::kTileN / 2; ++i) {
    const int h = i / 2 % 2;
    // Scores may be as large as masks are: then the difference comes first.
    const float x = Config::kScaled ? fmaf(r.s[i], scale, -shift[h]) : (r.s[i] - base[h]) * scale;
    r.s[i] = cuda::exp2_approx(x);
    sum[i % 4] += r.s[i];
  }
#pragma unroll
  for (int h = 0; h < 2; ++h) r.sum[h] = r.sum[h] * fade[h] + (sum[2 * h] + sum[2 * h + 1]);
}

template <typename Config>
__device__ inline void pack_scores(AttentionRegisters<Config>& r) {
#pragma unroll
  for (int step = 0; step < Config::kTileN / 16; ++step) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int from = 8 * step + 2 * i;
      r.p[step][i] = pack<typename Config::In>(r.s[from], r.s[from + 1]);
    }
  }
}

template <int N>
__device__ inline void pin_all(float (&x)[N]) {
#pragma unroll
  for (int i = 0; i < N; ++i) fence_operand(x[i]);
}

__device__ inline void release(Barrier& empty) {
  if (threadIdx.x % 128 == 0) empty.arrive();
}

// The warp's 16 rows of O through shared memory (its rows of Q's tile) to the epilogue. `row`: the first of them.
template <typename Config, typename Epilogue>
__device__ inline void store_attention(AttentionRegisters<Config>& r, const AttentionArgs& args,
                                       const Epilogue& epilogue, uint8_t* staging, int32_t batch, int32_t row) {
  using Traits = AttentionTraits<Config>;
  constexpr int kPiece = Traits::kTileM * kGemmRowBytes;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 - 4;
  uint8_t* rows = staging + warp * 16 * kGemmRowBytes;
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    float sum = r.sum[h];
    sum += __shfl_xor_sync(0xffffffffu, sum, 1);
    sum += __shfl_xor_sync(0xffffffffu, sum, 2);
    const float factor = Config::kZeroIfEmpty && sum == 0 ? 0.0f : 1.0f / sum;
    const uint32_t at = (lane / 4 + 8 * h) * kGemmRowBytes + lane % 4 * 4;
#pragma unroll
    for (int j = 0; j < Config::kWidth / 8; ++j) {
      const uint32_t two = pack<typename Config::In>(r.o[4 * j + 2 * h] * factor, r.o[4 * j + 2 * h + 1] * factor);
      *reinterpret_cast<uint32_t*>(rows + j / 8 * kPiece + swizzle<128>(at + j % 8 * 16)) = two;
    }
  }
  __syncwarp();
  // Eight lanes a row: 64 columns.
#pragma unroll
  for (int piece = 0; piece < (Config::kWidth + 63) / 64; ++piece) {
    const int32_t col = 64 * piece + lane % 8 * 8;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int32_t r16 = 4 * i + lane / 8;
      if (row + r16 >= args.m || col >= args.width) continue;
      struct alignas(16) Eight {
        typename Config::In x[8];
      };
      const uint32_t at = r16 * kGemmRowBytes + lane % 8 * 16;
      const Eight eight = *reinterpret_cast<const Eight*>(rows + piece * kPiece + swizzle<128>(at));
      float v[8];
#pragma unroll
      for (int c = 0; c < 8; ++c) v[c] = to_float(eight.x[c]);
      epilogue(v, batch, row + r16, col, args.width - col < 8 ? args.width - col : 8);
    }
  }
}

template <typename Config, typename Scores, typename Epilogue>
__device__ inline void attention_compute(const AttentionArgs& args, const Scores& scores, const Epilogue& epilogue,
                                         const AttentionShared<Config>& shared) {
  using Traits = AttentionTraits<Config>;
  const int group = static_cast<int>(threadIdx.x) / 128 - 1;
  const int32_t own_row = static_cast<int32_t>(threadIdx.x) / 32 * 16 - 64;  // the warp's, in the tile
  const int32_t lane_row = static_cast<int32_t>(threadIdx.x) % 32 / 4;
  const uint32_t q = shared_address(shared.q), k = shared_address(shared.k), v = shared_address(shared.v);
  AttentionRegisters<Config> r;
  PipelineState<Traits::kQStages> at_q;
  PipelineState<Traits::kStages> at_k, at_v;
  for (auto unit = static_cast<int32_t>(blockIdx.x); unit < args.units; unit += static_cast<int32_t>(gridDim.x)) {
    const int32_t batch = args.by_tiles.divide(unit);
    const int32_t row = (unit - batch * args.tiles_m) * Traits::kTileM + own_row;
    const uint32_t own_q = q + at_q.stage * Traits::kQBytes;
    float fade[2];
    r.max[0] = r.max[1] = -__builtin_inff();
    r.sum[0] = r.sum[1] = 0;
    shared.q_full[at_q.stage].wait(at_q.phase);
    shared.k_full[at_k.stage].wait(at_k.phase);
    wgmma_fence();
    multiply_keys<Config>(r, own_q, k + at_k.stage * Traits::kKBytes, group);
    wgmma_wait<0>();
    pin_all(r.s);
    release(shared.k_empty[at_k.stage]);
    at_k.step();
    finish_scores<Config>(r, args, scores, batch, row + lane_row, 0);
    exponentiate<Config>(r, args.scale, fade);
    pack_scores<Config>(r);
    if constexpr (!Config::kOneTile) {
#pragma unroll 1
      for (int32_t tile = 1; tile < args.key_tiles; ++tile) {
        shared.k_full[at_k.stage].wait(at_k.phase);
        wgmma_fence();
        multiply_keys<Config>(r, own_q, k + at_k.stage * Traits::kKBytes, group);
        shared.v_full[at_v.stage].wait(at_v.phase);
        wgmma_fence();
        multiply_values<Config>(r, v + at_v.stage * Traits::kVBytes, tile == 1);
        wgmma_wait<1>();
        pin_all(r.s);
        release(shared.k_empty[at_k.stage]);
        at_k.step();
        finish_scores<Config>(r, args, scores, batch, row + lane_row, tile * Traits::kTileN);
        exponentiate<Config>(r, args.scale, fade);
        wgmma_wait<0>();
        pin_all(r.o);
        release(shared.v_empty[at_v.stage]);
        at_v.step();
#pragma unroll
        for (int i = 0; i < Config::kWidth / 2; ++i) r.o[i] *= fade[i / 2 % 2];
        pack_scores<Config>(r);
      }
    }
    shared.v_full[at_v.stage].wait(at_v.phase);
    wgmma_fence();
    multiply_values<Config>(r, v + at_v.stage * Traits::kVBytes, Config::kOneTile || args.key_tiles == 1);
    wgmma_wait<0>();
    pin_all(r.o);
    release(shared.v_empty[at_v.stage]);
    at_v.step();
    store_attention<Config>(r, args, epilogue, shared.q + at_q.stage * Traits::kQBytes, batch, row);
    fence_async_shared();
    __syncwarp();
    if (threadIdx.x % 32 == 0) shared.q_empty[at_q.stage].arrive();
    at_q.step();
  }
}

// The maps are of rank 4, boxes as AttentionTile loads them.
template <typename Config, typename Scores, typename Epilogue>
__device__ inline void attention(const TensorMap& map_q, const TensorMap& map_k, const TensorMap& map_v,
                                 const AttentionArgs& args, const Scores& scores, const Epilogue& epilogue) {
  using Traits = AttentionTraits<Config>;
  extern __shared__ uint8_t raw_shared[];
  const AttentionShared<Config> shared(raw_shared);
  if (threadIdx.x == 0) {
    prefetch(map_q);
    prefetch(map_k);
    prefetch(map_v);
    shared.init();
  }
  __syncthreads();
  // Registers at entry are 65536 / threads, rounded down to a multiple of 8.
  if (threadIdx.x < 128) {
    if constexpr (Traits::kConsumers == 2) warpgroup_reg_dealloc<24>();
    if constexpr (Traits::kConsumers == 3) warpgroup_reg_dealloc<32>();
    if (threadIdx.x == 0) load_tiles<Config>(map_q, map_k, map_v, args, shared);
  } else {
    if constexpr (Traits::kConsumers == 2) warpgroup_reg_alloc<240>();
    if constexpr (Traits::kConsumers == 3) warpgroup_reg_alloc<160>();
    attention_compute<Config>(args, scores, epilogue, shared);
  }
}

}  // namespace heddle::tile::sm90
