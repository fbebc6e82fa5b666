#pragma once

#include <functional>
#include <vector>

#include "schedule/attention/attention.h"

namespace heddle::schedule {

// Classifies scores in rectangles of rows and keys by interval arithmetic over their expression. The result holds for
// any content of operands known only at run time. `constant` returns the content of a constant operand, else null.
//
// Sets `scale` to the factor of plain scores, and `ranges`. A range leaves out keys only if that changes no result:
// their scores are minus infinity, or so far below every plain score that their exponentials are zero, and each row has
// a plain score. Products are assumed to be finite, and scores to be within 4096 of zero: masks of -10000 or of the
// lowest value of a type are far below.
//
// Masks that leave each row adjacent keys, between lines, become two comparisons (row_mask.h), whatever their form.
//
// With `with_lengths`, if masks compare keys with an integer that depends only on the batch and is loaded from memory,
// also finds ranges for intervals of this integer: `length`.
void classify_scores(AttentionDesc& attention, const std::function<const Tensor*(uint32_t operand)>& constant,
                     bool with_lengths);

// For each tile of rows, in tiles of keys: the computed range and the plain range in it. No range is empty. If there is
// a length, these are the ranges for the longest.
struct KeyTiles {
  int64_t first, plain_first, plain_last, last;
  bool operator==(const KeyTiles&) const = default;
};
std::vector<KeyTiles> key_tiles(const AttentionDesc& attention, int64_t tile_m, int64_t tile_n);
// The same for given `ranges`: those of the attention or of a box of its length.
std::vector<KeyTiles> key_tiles(const AttentionDesc& attention, const std::vector<KeyRange>& ranges, int64_t tile_m,
                                int64_t tile_n);

}  // namespace heddle::schedule
