// Attention by mma.sync, on sm_80 and later: the kernel of warps.h with tiles that cp.async loads.
#pragma once

#include "tile/arch/sm80/mma.h"
#include "tile/kernel/cuda/attention/operand.h"
#include "tile/kernel/cuda/attention/warps.h"

namespace heddle::tile::sm80 {

template <typename In>
struct MmaAttention {
  using Lanes = cuda::MmaLanes;
  template <typename Source, int Rows, int Depth, int Threads, AttentionRole Role, int Pages = 1>
  using Operand = AttentionOperand<Source, In, Rows, Depth, Threads, Role, Pages>;
  static constexpr int kElement = sizeof(In), kStep = 32 / kElement;
  // f32 operands are split into two parts.
  static constexpr bool kSplitsNumbers = is_same<In, cuda::tf32x2>;

  static constexpr int q_bytes(int tile_m, int depth, int width) {
    return mma_attention_q_bytes(tile_m, depth, width, kElement);
  }

  // Adds a product to the accumulators of two adjacent blocks of 8 columns: acc += a b, where `a` has 16 rows and `b`
  // has 16 columns.
  __device__ static void multiply(float* acc, const uint32_t (&a)[4], const uint32_t (&b)[4]) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const uint32_t of_half[2] = {b[2 * half], b[2 * half + 1]};
      Mma<In>::issue(reinterpret_cast<float(&)[4]>(acc[4 * half]), a, of_half);
    }
  }
  // Does the same with FMA instructions, for f32.
  __device__ static void multiply_by_fma(float* acc, const uint32_t (&a)[4], const uint32_t (&b)[4]) {
    sm80::multiply_by_fma(reinterpret_cast<float(&)[1][2][4]>(*acc), reinterpret_cast<const uint32_t(&)[1][4]>(a),
                          reinterpret_cast<const uint32_t(&)[2][2]>(b));
  }
};

template <typename Config>
using AttentionTraits = cuda::WarpAttentionTraits<Config, MmaAttention<typename Config::In>>;

template <typename Config, typename K, typename V, typename Length>
__device__ inline void attention_ahead(const AttentionArgs& args, const K& k, const V& v, const Length& length,
                                       const cuda::NoPages& pages, uint32_t number) {
  cuda::warp_attention_ahead<Config, MmaAttention<typename Config::In>>(args, k, v, length, pages, number);
}

// Dynamic shared memory: mma_attention_shared_bytes(), or few_rows_shared_bytes() with kKeyWarps.
template <typename Config, typename Q, typename K, typename V, typename Scores, typename Sink, typename Length,
          typename Epilogue, typename Pages>
__device__ inline void attention_block(const AttentionArgs& args, const Q& q, const K& k, const V& v,
                                       const Scores& scores, const Sink& sink, const Length& length,
                                       const Epilogue& epilogue, const Pages& pages, uint32_t number) {
  cuda::warp_attention<Config, MmaAttention<typename Config::In>>(args, q, k, v, scores, sink, length, epilogue, pages,
                                                                  number);
}

// The kernel. A block computes one unit.
template <typename Config, typename Q, typename K, typename V, typename Scores, typename Sink, typename Length,
          typename Epilogue, typename Pages = cuda::NoPages>
__device__ inline void attention(const AttentionArgs& args, const Q& q, const K& k, const V& v, const Scores& scores,
                                 const Sink& sink, const Length& length, const Epilogue& epilogue,
                                 const Pages& pages = {}) {
  attention_block<Config>(args, q, k, v, scores, sink, length, epilogue, pages, blockIdx.x);
}

}  // namespace heddle::tile::sm80
