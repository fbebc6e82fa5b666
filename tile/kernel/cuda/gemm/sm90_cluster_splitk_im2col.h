// The kernel of tile/kernel/cuda/gemm/sm90_cluster_splitk.h, for convolutions. For one filter tap and a range of
// windows, TMA gathers the pixels that the tap multiplies (see sm90_im2col.h). These pixels become rows of A. The index
// k is (tap, channel); the channels of each tap fill whole k-tiles. The k-tiles are distributed cyclically over the
// blocks of a cluster. B holds the filters as rows of channels, with one batch per tap.
//
// Config is that of sm90_cluster_splitk.h with 16-bit operands contiguous along k, kSwapped = false and kClasses = 1.
// Batches are groups of channels. If there are several groups, each has whole k-tiles, and the filters of the groups
// are stored one after another.
#pragma once

#include "tile/core/cuda_operand.h"
#include "tile/kernel/cuda/gemm/sm90_cluster_splitk.h"

namespace heddle::tile::sm90 {

// A source of k-tiles, with the interface of ClusterSplitKBoxes.
template <typename Config>
struct ClusterSplitKWindows {
  using Traits = ClusterSplitKTraits<Config>;
  // A k-tile: its index within its tap, the tap, and the tap's column and row in the window.
  struct Place {
    int32_t tile, tap, column, row;
  };
  const TensorMap &map_a, &map_b;
  const GemmWindowsArgs& windows;
  const ClusterSplitKUnit& unit;
  const ClusterSplitKShared<Config>& shared;
  int32_t x, y, image, channel, filter;  // first window's origin; group's first channel; unit's first filter
  static_assert(Config::kAKMajor && Config::kBKMajor && !Config::kSwapped && sizeof(typename Config::In) <= 2);
  static_assert(!Config::kConstantA && !Config::kViews && Config::kClasses == 1);

  __device__ ClusterSplitKWindows(const TensorMap& a, const TensorMap& b, const GemmWindowsArgs& of, int32_t filters,
                                  const ClusterSplitKUnit& its_unit, const ClusterSplitKShared<Config>& its_shared)
      : map_a(a), map_b(b), windows(of), unit(its_unit), shared(its_shared) {
    const int32_t line = unit.m / windows.out[0];
    image = line / windows.out[1];  // after the last image, TMA loads only zeros
    x = (unit.m - line * windows.out[0]) * windows.stride[0] + windows.first[0];
    y = (line - image * windows.out[1]) * windows.stride[1] + windows.first[1];
    channel = unit.batch * windows.channel_tiles * Traits::kTileK;
    filter = unit.batch * filters + unit.n;
  }

  __device__ Place place(int32_t i) const {
    const int32_t k = unit.k + i * unit.step, tap = k / windows.channel_tiles, row = tap / windows.taps;
    return {k - tap * windows.channel_tiles, tap, tap - row * windows.taps, row};
  }
  // Advances to this block's next k-tile. Uses no divisions, which would delay the single loading thread.
  __device__ void advance(Place& at) const {
    at.tile += unit.step;
    while (at.tile >= windows.channel_tiles) {
      at.tile -= windows.channel_tiles, ++at.tap;
      if (++at.column == windows.taps) at.column = 0, ++at.row;
    }
  }
  template <bool WithA, bool WithB>
  __device__ void load(const Place& at, uint32_t stage) const {
    Barrier& full = shared.full[stage];
    uint8_t* to = shared.ring + stage * Traits::kStageBytes;
    const int32_t first = at.tile * Traits::kTileK;
    if constexpr (WithA) {
      load_windows(map_a, full, to, channel + first, x, y, image, at.column * windows.dilation[0],
                   at.row * windows.dilation[1], CacheHint::kEvictNormal);
    }
    if constexpr (WithB) {
      load_box(map_b, full, to + Traits::kABytes, first, filter, at.tap, CacheHint::kEvictNormal);
    }
  }
};

// The kernel. The launch is that of gemm_cluster_splitk().
template <typename Config, typename Epilogue>
__device__ inline void gemm_cluster_splitk_im2col(const TensorMap& map_a, const TensorMap& map_b,
                                                  const ClusterSplitKArgs& args, const GemmWindowsArgs& windows,
                                                  const Epilogue& epilogue) {
  extern __shared__ uint8_t raw_shared[];
  const ClusterSplitKShared<Config> shared(raw_shared);
  const auto rank = static_cast<int32_t>(blockIdx.x % Config::kClusterK);
  const ClusterSplitKUnit unit = cluster_splitk_unit<Config, ClusterSplitKTraits<Config>, true>(args, rank);
  const ClusterSplitKWindows<Config> source(map_a, map_b, windows, args.n, unit, shared);
  gemm_cluster_splitk_from<Config>(source, args, epilogue, shared, unit, rank);
}

}  // namespace heddle::tile::sm90
