#pragma once

#include <vector>

#include "schedule/region/stitch.h"

namespace heddle::schedule {

// Cuts the vector loop of a stage where a guard, clamp or reflection switches, so that all lanes in a piece take the
// same branch. Returns one piece if there is nothing to cut or there would be too many pieces.
std::vector<Piece> cut_pieces(ExprPool& pool, const Stage& stage, Piece whole);

}  // namespace heddle::schedule
