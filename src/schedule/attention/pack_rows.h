#pragma once

#include "schedule/attention/form.h"

namespace heddle::schedule {

// Merges the rows of heads that share keys and have few queries, so that the heads become the rows of one matrix. Tiles
// then have fewer empty rows, and keys are loaded once. Does nothing if the merged rows of Q would not have a single
// stride.
void pack_rows(AttentionForm& form);

}  // namespace heddle::schedule
