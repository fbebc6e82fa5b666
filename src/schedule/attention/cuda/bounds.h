#pragma once

#include <string>

#include "schedule/attention/attention.h"

namespace heddle::schedule {

// Which tiles of keys a tile of rows has, and which of these are plain, as the kernel computes them: `first`,
// `plain_first`, `plain_last` and `last` of its arguments, and the lengths for which they hold.
void set_bounds(tile::AttentionArgs& args, const AttentionDesc& attention, int64_t tile_m, int64_t tile_n);

// ", 28 of 64 tiles of keys left out, 8 masked" for reasons: of one head, by the bounds above. Empty where all scores
// are plain or a length decides.
std::string tiles_text(const AttentionDesc& attention, int64_t tile_m, int64_t tile_n);

}  // namespace heddle::schedule
