#pragma once

#include "schedule/attention/describe.h"

namespace heddle::schedule {

// Keys and values of a description, whose operands are there, as those in the form's pages. Throws
// kUnsupportedOperator.
void set_pages(AttentionDesc& desc, const AttentionForm& form, const AttentionValues& values);

// Whether tiles of so many keys lie in one page or have several whole ones, whose keys are lines of K and V.
bool fits_pages(const AttentionDesc& attention, int64_t tile_n);

}  // namespace heddle::schedule
