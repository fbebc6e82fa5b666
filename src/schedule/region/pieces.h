#pragma once

#include <vector>

#include "schedule/region/stitch.h"

namespace heddle::schedule {

// Cuts the vector loop of a stage where a guard, clamp or reflection changes its mind, so that within each piece all
// lanes take one way. One piece where there is nothing to cut or there would be too many.
std::vector<Piece> cut_pieces(ExprPool& pool, const Stage& stage, Piece whole);

}  // namespace heddle::schedule
