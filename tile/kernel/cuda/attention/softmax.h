// Softmax of attention scores in registers, for sm80.h and sm90.h. Four warps process the products of 64 rows and a
// tile of keys.
#pragma once

#include "tile/arch/cuda/builtins.h"
#include "tile/arch/sm80/approx.h"
#include "tile/arch/sm80/convert.h"
#include "tile/core/cuda_attention.h"

namespace heddle::tile::cuda {

inline constexpr float kAttentionLog2e = 1.4426950408889634f;

// The number of warps of a block that share the same 16 rows and process different keys (sm80.h); 0: each warp has its
// own rows.
template <typename Config>
inline constexpr int key_warps = 0;
template <typename Config>
requires requires {
  Config::kKeyWarps;
}
inline constexpr int key_warps<Config> = Config::kKeyWarps;

// The number of keys per instruction of the second product.
template <typename Config>
inline constexpr int kKeysOfStep = 32 / static_cast<int>(sizeof(typename Config::In));

// The registers of one of the threads that process 64 rows; each warp has 16 of these rows. `s`: scores, in the layout
// of Mma and Wgmma. `o`: results. `p`: the scores as an operand of the second product.
template <typename Config>
struct AttentionRegisters {
  float s[Config::kTileN / 2];
  float o[Config::kWidth / 2];
  uint32_t p[Config::kTileN / kKeysOfStep<Config>][4];
  // For each of the thread's two rows: the maximum of all scores so far; the sum of the exponentials in the columns of
  // this thread; and the factor that rescales the sums over earlier keys.
  float max[2], sum[2], fade[2];
};

// Computes scores from products, for a thread's rows `row` and `row` + 8 and for the tile's columns, which begin at
// `col`. `Inside`: the tile has no columns after the last key.
template <bool Inside, typename Config, typename Scores>
__device__ inline void apply_scores(AttentionRegisters<Config>& r, const AttentionArgs& args, const Scores& scores,
                                    int32_t batch, int32_t row, int32_t col) {
  const int32_t first = col + 2 * static_cast<int32_t>(threadIdx.x % 4), last = args.m - 1;
#pragma unroll
  for (int j = 0; j < Config::kTileN / 8; ++j) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {  // both rows read the same operands that depend on the key
      const int32_t at = first + 8 * j, valid = Inside || args.n - at > 2 ? 2 : args.n - at;
      if (valid <= 0) continue;
      float v[2] = {r.s[4 * j + 2 * h], r.s[4 * j + 2 * h + 1]};
      scores(v, batch, row + 8 * h < last ? row + 8 * h : last, at, valid);
      r.s[4 * j + 2 * h] = v[0];
      r.s[4 * j + 2 * h + 1] = v[1];
    }
  }
}

// Sets the scores of positions after the last key to minus infinity.
template <typename Config>
__device__ inline void cut_scores(AttentionRegisters<Config>& r, const AttentionArgs& args, int32_t col) {
  const int32_t first = col + 2 * static_cast<int32_t>(threadIdx.x % 4);
#pragma unroll
  for (int i = 0; i < Config::kTileN / 2; ++i) {
    if (first + 8 * (i / 4) + i % 2 >= args.n) r.s[i] = -__builtin_inff();
  }
}

// Replaces each score by exp(score - maximum). `Plain`: r.s holds products, and a score is args.factor * product.
// Maxima and sums use four independent chains to hide latency, because a scheduler may have no other warp to run.
template <bool Plain, typename Config>
__device__ inline void exponentiate(AttentionRegisters<Config>& r, const AttentionArgs& args) {
  float top[4] = {r.s[0], r.s[1], r.s[2], r.s[3]}, base[2], shift[2], sum[4] = {0, 0, 0, 0};
#pragma unroll
  for (int i = 4; i < Config::kTileN / 2; ++i) top[i % 4] = fmaxf(top[i % 4], r.s[i]);
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    float most = fmaxf(top[2 * h], top[2 * h + 1]);
    most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, 1));
    most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, 2));
    most = fmaxf(Plain ? most * args.factor : most, r.max[h]);
    // If all scores of a row are minus infinity so far, their exponentials must be 0, not NaN.
    base[h] = most == -__builtin_inff() ? 0.0f : most;
    shift[h] = base[h] * kAttentionLog2e;
    r.fade[h] = exp2_approx((r.max[h] - base[h]) * kAttentionLog2e);
    r.max[h] = most;
  }
#pragma unroll
  for (int i = 0; i < Config::kTileN / 2; ++i) {
    const int h = i / 2 % 2;
    // Scores may be as large as mask values, so the maximum is subtracted before scaling.
    const float x = Plain ? fmaf(r.s[i], args.scale, -shift[h]) : (r.s[i] - base[h]) * kAttentionLog2e;
    r.s[i] = exp2_approx(x);
    sum[i % 4] += r.s[i];
  }
#pragma unroll
  for (int h = 0; h < 2; ++h) r.sum[h] = r.sum[h] * r.fade[h] + (sum[2 * h] + sum[2 * h + 1]);
}

// Converts the scores to an operand of the second product. With 32-bit elements, let t be threadIdx.x % 4. In each
// group of 8 columns, a lane holds columns 2t and 2t + 1, which become words t and t + 4 of the operand. The keys of
// the second product are permuted accordingly (PairedKeys of operand.h).
template <typename Config>
__device__ inline void pack_scores(AttentionRegisters<Config>& r) {
  using In = typename Config::In;
#pragma unroll
  for (int step = 0; step < Config::kTileN / kKeysOfStep<Config>; ++step) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if constexpr (sizeof(In) == 2) {
        const int from = 8 * step + 2 * i;
        r.p[step][i] = pack<In>(r.s[from], r.s[from + 1]);
      } else {
        r.p[step][i] = __float_as_uint(to_float(from_float<In>(r.s[4 * step + 2 * (i % 2) + i / 2])));
      }
    }
  }
}

template <typename Config>
__device__ inline void fade_results(AttentionRegisters<Config>& r) {
#pragma unroll
  for (int i = 0; i < Config::kWidth / 2; ++i) r.o[i] *= r.fade[i / 2 % 2];
}

}  // namespace heddle::tile::cuda
