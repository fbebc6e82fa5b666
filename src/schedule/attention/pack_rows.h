#pragma once

#include "schedule/attention/form.h"

namespace heddle::schedule {

// Heads that share keys and have few queries become rows of one matrix: fewer rows of a tile stay empty, and keys are
// loaded once. Only where rows of Q stay one stride apart.
void pack_rows(AttentionForm& form);

}  // namespace heddle::schedule
