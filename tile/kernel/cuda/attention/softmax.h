// Softmax of attention scores in registers, for warps.h and sm90.h. Four warps process the products of 64 rows and a
// tile of keys.
#pragma once

#include "tile/arch/cuda/warp.h"
#include "tile/arch/sm80/approx.h"
#include "tile/arch/sm80/convert.h"
#include "tile/core/cuda_attention.h"
#include "tile/kernel/cuda/attention/lanes.h"

namespace heddle::tile::cuda {

inline constexpr float kAttentionLog2e = 1.4426950408889634f;

// The number of warps of a block that share the same 16 rows and process different keys (warps.h); 0: each warp has its
// own rows.
template <typename Config>
inline constexpr int key_warps = 0;
template <typename Config>
requires requires {
  Config::kKeyWarps;
}
inline constexpr int key_warps<Config> = Config::kKeyWarps;

// The number of keys of a fragment of the second product, and the words that a lane has of it.
template <typename Config, typename Lanes>
inline constexpr int kKeysOfStep = is_same<Lanes, MfmaLanes> ? 16 : 32 / static_cast<int>(sizeof(typename Config::In));
template <typename Config, typename Lanes>
inline constexpr int kWordsOfStep = kKeysOfStep<Config, Lanes> * 16 /
                                    Lanes::kLanes* static_cast<int>(sizeof(typename Config::In)) / 4;

// The registers of one of the threads that process 64 rows; each warp has 16 of these rows. `s`: scores, in the layout
// of Lanes. `o`: results. `p`: the scores as an operand of the second product.
template <typename Config, typename Lanes = MmaLanes>
struct AttentionRegisters {
  float s[Config::kTileN * 16 / Lanes::kLanes];
  float o[Config::kWidth * 16 / Lanes::kLanes];
  uint32_t p[Config::kTileN / kKeysOfStep<Config, Lanes>][kWordsOfStep<Config, Lanes>];
  // For each of the thread's rows: the maximum of all scores so far; the sum of the exponentials in the columns of this
  // thread; and the factor that rescales the sums over earlier keys.
  float max[Lanes::kRows], sum[Lanes::kRows], fade[Lanes::kRows];
};

// Combines the values that the four lanes of a row have.
template <typename Lanes, typename F>
__device__ inline float over_row(float x, F combine) {
  x = combine(x, __shfl_xor_sync(all_lanes, x, Lanes::kNear));
  return combine(x, __shfl_xor_sync(all_lanes, x, 2 * Lanes::kNear));
}

// Computes scores from products, for a thread's rows, the first of which is `row`, and for the tile's columns, which
// begin at `col`. `Inside`: the tile has no columns after the last key.
template <bool Inside, typename Config, typename Lanes, typename Scores>
__device__ inline void apply_scores(AttentionRegisters<Config, Lanes>& r, const AttentionArgs& args,
                                    const Scores& scores, int32_t batch, int32_t row, int32_t col) {
  constexpr int kRun = Lanes::kRun;
  const int32_t first = col + Lanes::column(), last = args.m - 1;
#pragma unroll
  for (int j = 0; j < Config::kTileN / Lanes::kStride; ++j) {
#pragma unroll
    for (int h = 0; h < Lanes::kRows; ++h) {  // all rows read the same operands that depend on the key
      const int32_t own = row + 8 * h, at = first + Lanes::kStride * j;
      const int32_t valid = Inside || args.n - at > kRun ? kRun : args.n - at;
      if (valid <= 0) continue;
      float v[kRun];
#pragma unroll
      for (int i = 0; i < kRun; ++i) v[i] = r.s[4 * j + kRun * h + i];
      scores(v, batch, own < last ? own : last, at, valid);
#pragma unroll
      for (int i = 0; i < kRun; ++i) r.s[4 * j + kRun * h + i] = v[i];
    }
  }
}

// Sets the scores of positions after the last key to minus infinity.
template <typename Config, typename Lanes>
__device__ inline void cut_scores(AttentionRegisters<Config, Lanes>& r, const AttentionArgs& args, int32_t col) {
  const int32_t first = col + Lanes::column();
#pragma unroll
  for (int i = 0; i < Config::kTileN * 16 / Lanes::kLanes; ++i) {
    if (first + Lanes::kStride * (i / 4) + i % Lanes::kRun >= args.n) r.s[i] = -__builtin_inff();
  }
}

// Replaces each score by exp(score - maximum). `Plain`: r.s holds products, and a score is args.factor * product.
// Maxima and sums use four independent chains to hide latency, because a scheduler may have no other warp to run.
template <bool Plain, typename Config, typename Lanes>
__device__ inline void exponentiate(AttentionRegisters<Config, Lanes>& r, const AttentionArgs& args) {
  constexpr int kRows = Lanes::kRows, kRun = Lanes::kRun, kScores = Config::kTileN * 16 / Lanes::kLanes;
  const auto larger = [](float x, float y) __attribute__((always_inline)) {
    return fmaxf(x, y);
  };
  float top[4] = {r.s[0], r.s[1], r.s[2], r.s[3]}, base[kRows], shift[kRows], sum[4] = {0, 0, 0, 0};
#pragma unroll
  for (int i = 4; i < kScores; ++i) top[i % 4] = fmaxf(top[i % 4], r.s[i]);
#pragma unroll
  for (int h = 0; h < kRows; ++h) {
    float most = top[kRun * h];
#pragma unroll
    for (int i = 1; i < kRun; ++i) most = fmaxf(most, top[kRun * h + i]);
    most = over_row<Lanes>(most, larger);
    most = fmaxf(Plain ? most * args.factor : most, r.max[h]);
    // If all scores of a row are minus infinity so far, their exponentials must be 0, not NaN.
    base[h] = most == -__builtin_inff() ? 0.0f : most;
    shift[h] = base[h] * kAttentionLog2e;
    r.fade[h] = exp2_approx((r.max[h] - base[h]) * kAttentionLog2e);
    r.max[h] = most;
  }
#pragma unroll
  for (int i = 0; i < kScores; ++i) {
    const int h = i % 4 / kRun;
    // Scores may be as large as mask values, so the maximum is subtracted before scaling.
    const float x = Plain ? fmaf(r.s[i], args.scale, -shift[h]) : (r.s[i] - base[h]) * kAttentionLog2e;
    r.s[i] = exp2_approx(x);
    sum[i % 4] += r.s[i];
  }
#pragma unroll
  for (int h = 0; h < kRows; ++h) {
    float added = sum[kRun * h];
#pragma unroll
    for (int i = 1; i < kRun; ++i) added += sum[kRun * h + i];
    r.sum[h] = r.sum[h] * r.fade[h] + added;
  }
}

// Converts the scores to an operand of the second product. With 32-bit elements of Mma, let t be threadIdx.x % 4. In
// each group of 8 columns, a lane holds columns 2t and 2t + 1, which become words t and t + 4 of the operand. The keys
// of the second product are permuted accordingly (PairedKeys of operand.h).
template <typename Config, typename Lanes>
__device__ inline void pack_scores(AttentionRegisters<Config, Lanes>& r) {
  using In = typename Config::In;
  constexpr int kWords = kWordsOfStep<Config, Lanes>;
#pragma unroll
  for (int step = 0; step < Config::kTileN / kKeysOfStep<Config, Lanes>; ++step) {
#pragma unroll
    for (int i = 0; i < kWords; ++i) {
      if constexpr (sizeof(In) == 2) {
        const int from = 2 * (kWords * step + i);
        r.p[step][i] = pack<In>(r.s[from], r.s[from + 1]);
      } else if constexpr (is_same<Lanes, MfmaLanes>) {
        r.p[step][i] = __float_as_uint(r.s[kWords * step + i]);
      } else {
        r.p[step][i] = __float_as_uint(to_float(from_float<In>(r.s[4 * step + 2 * (i % 2) + i / 2])));
      }
    }
  }
}

template <typename Config, typename Lanes>
__device__ inline void fade_results(AttentionRegisters<Config, Lanes>& r) {
#pragma unroll
  for (int i = 0; i < Config::kWidth * 16 / Lanes::kLanes; ++i) r.o[i] *= r.fade[i % 4 / Lanes::kRun];
}

}  // namespace heddle::tile::cuda
