// The GEMM kernel of tile/kernel/cuda/gemm/sm90.h for convolutions. For one filter tap and a range of windows, TMA
// gathers the pixels that the tap multiplies. These pixels become rows of A. The k dimension is (tap, channel); the
// channels of a tap are padded with zeros to whole k-tiles. The filters are B: their rows have one element per channel,
// and each tap is a batch.
//
// Config is that of tile/kernel/cuda/gemm/sm90.h. Operands must have 16 bits and be contiguous along k; kSwapped must
// be false. Batches are groups of channels. If there are several groups, the channels of each must fill whole k-tiles;
// their filters are stored consecutively.
#pragma once

#include "tile/core/cuda_operand.h"
#include "tile/kernel/cuda/gemm/sm90.h"

namespace heddle::tile::sm90 {

// One thread fills the ring of stages, as in gemm_produce().
template <typename Config>
__device__ inline PipelineState<Config::kStages> gemm_produce_windows(const TensorMap& map_a, const TensorMap& map_b,
                                                                      const GemmWindowsArgs& windows,
                                                                      const GemmShared<Config>& shared,
                                                                      PersistentTileScheduler<Config>& walk,
                                                                      GemmUnit unit) {
  using Traits = GemmTraits<Config>;
  constexpr int kShares = Config::kClusterN, kRows = Config::kTileM / kShares;
  static_assert(!Config::kConstantA);
  static_assert(Config::kAKMajor && Config::kBKMajor && !kSwapped<Config> && sizeof(typename Config::In) <= 2);
  PipelineState<Traits::kStages> at;
  bool first_unit = true;
  int32_t begun = 0;  // number of stages whose filters are already requested
  while (true) {
    // Computes the first window of this block's share of the rows. Windows after the last image are zero.
    const int32_t share = kShares == 1 ? 0 : walk.rank * kRows;
    const int32_t first = unit.m + share, line = first / windows.out[0];
    const int32_t image = line / windows.out[1];
    const int32_t x = (first - line * windows.out[0]) * windows.stride[0] + windows.first[0];
    const int32_t y = (line - image * windows.out[1]) * windows.stride[1] + windows.first[1];
    int32_t tap = unit.k.first / windows.channel_tiles, tile = unit.k.first - tap * windows.channel_tiles;
    int32_t row = tap / windows.taps, column = tap - row * windows.taps;
    const int32_t group = unit.batch * windows.channel_tiles * Traits::kTileK,
                  filter = unit.batch * walk.args.n + unit.n;
    const auto load_filters = [&](int32_t tap_at, int32_t tile_at, uint32_t stage) {
      load_operand<Config::kTileN, Traits::kTileK, true, Config::kClusterM>(
          map_b, shared.full[stage], shared.b + stage * Traits::kBBytes, filter, tile_at * Traits::kTileK, tap_at,
          walk.rank);
    };
    if (first_unit) {
      int32_t tap_at = tap, tile_at = tile;
      begun = load_constants<Config>(shared, unit.k.last - unit.k.first, [&](int32_t i) {
        load_filters(tap_at, tile_at, static_cast<uint32_t>(i));
        if (++tile_at == windows.channel_tiles) tile_at = 0, ++tap_at;
      });
      first_unit = false;
    }
    for (int32_t k = unit.k.first; k < unit.k.last; ++k, at.step()) {
      if (begun > 0) {
        --begun;
      } else {
        shared.empty[at.stage].wait(at.phase ^ 1);
        shared.full[at.stage].arrive_expect(Traits::kABytes + Traits::kBBytes);
        load_filters(tap, tile, at.stage);
      }
      Barrier& full = shared.full[at.stage];
      uint8_t* to = shared.a + at.stage * Traits::kABytes + share * kGemmRowBytes;
      const int32_t channel = group + tile * Traits::kTileK;
      if constexpr (kShares == 1) {
        load_windows(map_a, full, to, channel, x, y, image, column * windows.dilation[0], row * windows.dilation[1],
                     CacheHint::kEvictNormal);
      } else {
        load_windows_multicast(map_a, full, to, channel, x, y, image, column * windows.dilation[0],
                               row * windows.dilation[1], (1 << kShares) - 1, CacheHint::kEvictNormal);
      }
      if (++tile == windows.channel_tiles) {
        tile = 0, ++tap;
        if (++column == windows.taps) column = 0, ++row;
      }
    }
    walk.next();
    if (!walk.valid()) return at;
    unit = walk.get();
  }
}

// The kernel. It must be launched as gemm() is.
template <typename Config, typename Epilogue>
__device__ inline void gemm_windows(const TensorMap& map_a, const TensorMap& map_b, const TensorMap& map_d,
                                    const GemmArgs& args, const GemmWindowsArgs& windows, const Epilogue& epilogue,
                                    const TensorMap* residual = nullptr) {
  gemm_with<Config, false>(
      map_a, map_b, map_d, args, epilogue,
      [&](const GemmShared<Config>& shared, PersistentTileScheduler<Config>& walk, const GemmUnit& first) {
        return gemm_produce_windows<Config>(map_a, map_b, windows, shared, walk, first);
      },
      residual);
}

}  // namespace heddle::tile::sm90
