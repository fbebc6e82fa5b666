#pragma once

#include "schedule/attention/masks/score_class.h"

namespace heddle::schedule {

// Where each row has plain scores side by side and no others count, and the ends of these lie on lines between two
// limits (causal masks, windows, prefixes, in any of their forms): makes `scores` two comparisons of positions, or
// `scaled` where no score is masked. Returns whether it did.
bool simplify_mask(AttentionDesc& attention, ScoreClasses& classes);

}  // namespace heddle::schedule
