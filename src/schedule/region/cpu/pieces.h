#pragma once

#include <vector>

#include "schedule/region/stitch.h"

namespace heddle::schedule {

// Splits the vector loop of a stage at the indices where a guard, clamp or reflection changes. Within a piece, all
// lanes then take the same branch. Returns one piece if there is nothing to split or if there would be too many pieces.
std::vector<Piece> cut_pieces(ExprPool& pool, const Stage& stage, Piece whole);

}  // namespace heddle::schedule
