#pragma once

#include <functional>
#include <vector>

#include "schedule/attention/attention.h"

namespace heddle::schedule {

// Reads what scores are off their expression, in rectangles of rows and keys, by interval arithmetic: which they are
// whatever the operands hold that only a run knows. `constant` gives the content of an operand that is constant, else
// null.
//
// Sets `scale` to the factor of plain scores, and `ranges`. Keys are left out of a range only where leaving them out
// changes no result: they are minus infinity, or so far below every plain score that their exponentials are zero, and
// each row has a plain score. Products count as finite, scores as within 4096 of zero: masks of -10000 or of the least
// value of a type are far below.
//
// Masks that leave each row keys side by side, between lines, become two comparisons (row_mask.h), whatever they were.
//
// Where masks compare keys with an integer that is the batch's alone and comes from memory, ranges are found for
// intervals of it, too, `with_lengths`: `length`.
void classify_scores(AttentionDesc& attention, const std::function<const Tensor*(uint32_t operand)>& constant,
                     bool with_lengths);

// For each tile of rows, in tiles of keys: what is computed, and which of that is plain. Every range has a tile. Where
// there is a length, as of the longest.
struct KeyTiles {
  int64_t first, plain_first, plain_last, last;
  bool operator==(const KeyTiles&) const = default;
};
std::vector<KeyTiles> key_tiles(const AttentionDesc& attention, int64_t tile_m, int64_t tile_n);
// As of `ranges`: the attention's, or those of a box of its length.
std::vector<KeyTiles> key_tiles(const AttentionDesc& attention, const std::vector<KeyRange>& ranges, int64_t tile_m,
                                int64_t tile_n);

}  // namespace heddle::schedule
