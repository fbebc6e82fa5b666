#pragma once

#include "schedule/attention/form.h"

namespace heddle::schedule {

// Makes heads that share keys and have few queries rows of one matrix. Fewer rows of a tile stay empty, and keys are
// loaded once. Applies only if the rows of Q keep one stride.
void pack_rows(AttentionForm& form);

}  // namespace heddle::schedule
