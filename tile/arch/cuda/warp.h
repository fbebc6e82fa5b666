// The number of threads of a warp: 32, or TILE_WARP_LANES if the unit defines it (a wave of an AMD GPU may have 64).
#pragma once

#include "tile/core/types.h"

namespace heddle::tile {

#if defined(TILE_WARP_LANES)
inline constexpr int warp_lanes = TILE_WARP_LANES;
#else
inline constexpr int warp_lanes = 32;
#endif

// The mask of all lanes of a warp.
inline constexpr uint_t<warp_lanes / 8> all_lanes = ~uint_t<warp_lanes / 8>(0);

}  // namespace heddle::tile
