#pragma once

#include "schedule/attention/masks/score_class.h"

namespace heddle::schedule {

// Simplifies an attention mask. Requires that the keys with plain scores in each row are contiguous, that all other
// scores are masked out, and that the first and the last of these keys are linear functions of the row, clamped to two
// limits (causal masks, windows, prefixes in any form). Then replaces `scores` by two comparisons of positions, or sets
// `scaled` if no score is masked. Returns true if the mask was simplified.
bool simplify_mask(AttentionDesc& attention, ScoreClasses& classes);

}  // namespace heddle::schedule
