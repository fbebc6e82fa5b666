#pragma once

#include <string>

#include "schedule/attention/attention.h"

namespace heddle::schedule {

// Sets the bounds `first`, `plain_first`, `plain_last` and `last` in the kernel's arguments. For a tile of rows, the
// kernel computes from the bounds the range of key tiles to process, and the subrange of key tiles whose scores are
// plain (without a mask). Also sets the range of key lengths for which the bounds are valid.
void set_bounds(tile::AttentionArgs& args, const AttentionDesc& attention, int64_t tile_m, int64_t tile_n);

// Returns a text to append to the reason for the kernel's configuration, such as ", 28 of 64 tiles of keys left out, 8
// masked". The numbers are for one head and follow from the bounds of set_bounds(). Returns "" if all scores are plain,
// or if the numbers depend on a length that is only known at run time.
std::string tiles_text(const AttentionDesc& attention, int64_t tile_m, int64_t tile_n);

}  // namespace heddle::schedule
