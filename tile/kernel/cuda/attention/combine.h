// Combines the partial results of split attention, which are in memory (AttentionSplit::kCombine), and
// passes O to the epilogue. Many blocks combine each group of 64 rows. Without this kernel, the last attention block of
// the group would read all parts alone.
#pragma once

#include "tile/kernel/cuda/attention/results.h"
#include "tile/kernel/cuda/attention/units.h"

namespace heddle::tile::cuda {

// A block has 128 threads. Block (x, y) computes columns 8 * y to 8 * y + 7 of a panel of O, for the x-th group of 64
// rows.
template <typename Config, typename Sink, typename Epilogue>
__device__ inline void attention_combine(const AttentionArgs& args, const Sink& sink, const Epilogue& epilogue) {
  const auto rows = static_cast<int32_t>(blockIdx.x), thread = static_cast<int32_t>(threadIdx.x);
  const int lane = thread % 32;
  AttentionUnit unit;
  set_rows<Config>(unit, args, rows / Config::kConsumers);
  const int32_t row = unit.row + rows % Config::kConsumers * kAttentionGroupRows + thread / 32 * 16 + lane / 4;
  const int32_t col = first_column<Config>(unit) + 8 * static_cast<int32_t>(blockIdx.y);
  using Parts = AttentionParts<Config>;
  typename Parts::Sums r{{0, 0, 0, 0}, {0, 0}, {1, 1}};
  if (row < args.m) r = Parts(args, rows).sums_of(static_cast<int>(blockIdx.y), thread);
  const float of_rows[2][2] = {{r.four.x, r.four.y}, {r.four.z, r.four.w}};
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const float factor = row_factor<Config>(r.sum[h], r.max[h], args, sink, unit.batch, row + 8 * h);
    // One of a row's four lanes collects all 8 columns, rounded as in the other kernels.
    float v[8];
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      float x = of_rows[h][i % 2] * factor;
      if constexpr (sizeof(typename Config::In) == 2) x = to_float(from_float<typename Config::In>(x));
      v[i] = __shfl_sync(0xffffffffu, x, lane / 4 * 4 + i / 2);
    }
    const bool stores = lane % 4 == h && row + 8 * h < args.m && col < args.width;
    if (stores) epilogue(v, unit.batch, row + 8 * h, col, args.width - col < 8 ? args.width - col : 8);
  }
}

}  // namespace heddle::tile::cuda
