#pragma once

#include <string>

#include "schedule/attention/attention.h"

namespace heddle::schedule {

// Sets the bounds from which the kernel computes the tiles of keys of a tile of rows, and the plain ones among them:
// `first`, `plain_first`, `plain_last` and `last` of its arguments. Also sets the lengths for which the bounds hold.
void set_bounds(tile::AttentionArgs& args, const AttentionDesc& attention, int64_t tile_m, int64_t tile_n);

// ", 28 of 64 tiles of keys left out, 8 masked", as part of a reason: counted for one head by the bounds above. Empty
// if all scores are plain or a length decides.
std::string tiles_text(const AttentionDesc& attention, int64_t tile_m, int64_t tile_n);

}  // namespace heddle::schedule
