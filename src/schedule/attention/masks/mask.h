#pragma once

#include <functional>
#include <vector>

#include "schedule/attention/attention.h"

namespace heddle::schedule {

// Classifies scores in rectangles of rows and keys, by interval arithmetic on the expression of the scores. The result
// holds for any content of operands that are known only at run time. `constant` returns the content of a constant
// operand, and null for other operands.
//
// Sets `scale` to the factor of plain scores, and sets `ranges`. A range excludes a key only if this does not change
// any result. This holds in two cases: the key's scores are minus infinity; or each row has a plain score, and the
// key's scores are so far below every plain score that their exponentials are zero. Products are assumed to be finite,
// and scores to be within 4096 of zero. Masks of -10000, or of the lowest value of a type, are far below these scores.
//
// If a mask leaves each row a contiguous range of keys whose ends are linear in the row, the mask becomes two
// comparisons (row_mask.h), whatever its form in the model.
//
// Some masks compare keys with an integer that depends only on the batch and is loaded from memory. With
// `with_lengths`, also finds ranges for intervals of this integer (`length`).
void classify_scores(AttentionDesc& attention, const std::function<const Tensor*(uint32_t operand)>& constant,
                     bool with_lengths);

// For one tile of rows: the range [first, last) of key tiles to compute, and the range of plain tiles in it. The range
// to compute is not empty. If there is a length, these are the ranges for the largest length. key_tiles() returns them
// for all tiles of rows.
struct KeyTiles {
  int64_t first, plain_first, plain_last, last;
  bool operator==(const KeyTiles&) const = default;
};
std::vector<KeyTiles> key_tiles(const AttentionDesc& attention, int64_t tile_m, int64_t tile_n);
// Computes the key tiles from the given `ranges`: those of the attention, or those of a box of its length.
std::vector<KeyTiles> key_tiles(const AttentionDesc& attention, const std::vector<KeyRange>& ranges, int64_t tile_m,
                                int64_t tile_n);

}  // namespace heddle::schedule
