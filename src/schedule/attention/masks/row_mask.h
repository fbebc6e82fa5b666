#pragma once

#include "schedule/attention/masks/score_class.h"

namespace heddle::schedule {

// Applies if the plain scores of each row are adjacent, no others count, and the ends of these ranges are lines between
// two limits (causal masks, windows, prefixes in any form). Then replaces `scores` by two comparisons of positions, or
// sets `scaled` if no score is masked. Returns true if it applied.
bool simplify_mask(AttentionDesc& attention, ScoreClasses& classes);

}  // namespace heddle::schedule
