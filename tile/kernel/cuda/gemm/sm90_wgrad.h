// The GEMM kernel of tile/kernel/cuda/gemm/sm90.h for the gradients of a convolution's filters. The k dimension is the
// windows of all images. Rows of D are (tap, channel), with the channels of a tap padded to whole strips of 64; columns
// are output channels. Both operands stay channels last in memory, so each k-tile has the channels of 64 windows: TMA
// gathers those that one tap multiplies as a strip of A, and loads the gradients of the outputs as B.
//
// Config is that of tile/kernel/cuda/gemm/sm90.h. Operands must have 16 bits, and neither is k-major; kSwapped must be
// false. Batches are groups of channels. If there are several groups, the channels of each must fill whole strips.
#pragma once

#include "tile/core/cuda_operand.h"
#include "tile/kernel/cuda/gemm/sm90.h"

namespace heddle::tile::sm90 {

// A position among the windows of all images.
struct WindowPlace {
  int32_t x, y, image;

  __device__ WindowPlace(const GemmWindowsArgs& windows, int32_t window) {
    const int32_t line = window / windows.out[0];
    image = line / windows.out[1];
    x = window - line * windows.out[0], y = line - image * windows.out[1];
  }
  // Moves on by `step`, the place of some window. Uses no divisions, which would delay the single loading thread.
  __device__ void advance(const GemmWindowsArgs& windows, const WindowPlace& step) {
    x += step.x, y += step.y, image += step.image;
    if (x >= windows.out[0]) x -= windows.out[0], ++y;
    if (y >= windows.out[1]) y -= windows.out[1], ++image;
  }
};

// The strips of a tile of A: their first channels, and the offsets of their taps.
template <int kStrips>
struct WgradStrips {
  int32_t channel[kStrips], x[kStrips], y[kStrips];

  __device__ WgradStrips(const GemmWindowsArgs& windows, int32_t first, int32_t group) {
    int32_t tap = first / windows.channel_tiles, tile = first - tap * windows.channel_tiles;
    int32_t row = tap / windows.taps, column = tap - row * windows.taps;
#pragma unroll
    for (int strip = 0; strip < kStrips; ++strip) {
      channel[strip] = (group * windows.channel_tiles + tile) * 64;
      x[strip] = column * windows.dilation[0], y[strip] = row * windows.dilation[1];
      if (++tile == windows.channel_tiles) {
        tile = 0;
        if (++column == windows.taps) column = 0, ++row;
      }
    }
  }
};

// One thread fills the ring of stages, as in gemm_produce().
template <typename Config>
__device__ inline PipelineState<Config::kStages> gemm_produce_wgrad(const TensorMap& map_a, const TensorMap& map_b,
                                                                    const GemmWindowsArgs& windows,
                                                                    const GemmShared<Config>& shared,
                                                                    PersistentTileScheduler<Config>& walk,
                                                                    GemmUnit unit) {
  using Traits = GemmTraits<Config>;
  constexpr int kShares = Config::kClusterN, kDepth = Traits::kTileK / kShares, kStrips = Config::kTileM / 64;
  static_assert(!Config::kConstantA && !Config::kConstantB && !Config::kAKMajor && !Config::kBKMajor);
  static_assert(!kSwapped<Config> && sizeof(typename Config::In) == 2);
  const int32_t share = kShares == 1 ? 0 : walk.rank * kDepth;  // this block's windows of a k-tile
  const WindowPlace step(windows, Traits::kTileK);
  PipelineState<Traits::kStages> at;
  grid_dependency_wait();
  while (true) {
    const WgradStrips<kStrips> strips(windows, unit.m / 64, unit.batch);
    WindowPlace place(windows, unit.k.first * Traits::kTileK + share);  // after the last image, TMA loads zeros
    for (int32_t k = unit.k.first; k < unit.k.last; ++k, at.step()) {
      Barrier& full = shared.full[at.stage];
      shared.empty[at.stage].wait(at.phase ^ 1);
      full.arrive_expect(Traits::kABytes + Traits::kBBytes);
      load_operand<Config::kTileN, Traits::kTileK, false, Config::kClusterM>(
          map_b, full, shared.b + at.stage * Traits::kBBytes, unit.n, k * Traits::kTileK, unit.batch, walk.rank);
      const int32_t x = place.x * windows.stride[0] + windows.first[0],
                    y = place.y * windows.stride[1] + windows.first[1];
      uint8_t* to = shared.a + at.stage * Traits::kABytes + share * kGemmRowBytes;
#pragma unroll
      for (int strip = 0; strip < kStrips; ++strip, to += Traits::kStripBytes) {
        if constexpr (kShares == 1) {
          load_windows(map_a, full, to, strips.channel[strip], x, y, place.image, strips.x[strip], strips.y[strip],
                       CacheHint::kEvictNormal);
        } else {
          load_windows_multicast(map_a, full, to, strips.channel[strip], x, y, place.image, strips.x[strip],
                                 strips.y[strip], (1 << kShares) - 1, CacheHint::kEvictNormal);
        }
      }
      place.advance(windows, step);
    }
    walk.next();
    if (!walk.valid()) return at;
    unit = walk.get();
  }
}

// The kernel. It must be launched as gemm() is.
template <typename Config, typename Epilogue>
__device__ inline void gemm_wgrad(const TensorMap& map_a, const TensorMap& map_b, const TensorMap& map_d,
                                  const GemmArgs& args, const GemmWindowsArgs& windows, const Epilogue& epilogue,
                                  const TensorMap* residual = nullptr) {
  gemm_with<Config, false>(
      map_a, map_b, map_d, args, epilogue,
      [&](const GemmShared<Config>& shared, PersistentTileScheduler<Config>& walk, const GemmUnit& first) {
        return gemm_produce_wgrad<Config>(map_a, map_b, windows, shared, walk, first);
      },
      residual);
}

}  // namespace heddle::tile::sm90
