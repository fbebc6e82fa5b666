#pragma once

#include "schedule/attention/describe.h"

namespace heddle::schedule {

// Puts the keys and values of a description, whose operands are already set, into the form's pages. Throws
// kUnsupportedOperator.
void set_pages(AttentionDesc& desc, const AttentionForm& form, const AttentionValues& values);

// True if tiles of `tile_n` keys fit the pages, or if there are none. A tile must lie in one page or consist of several
// whole pages whose keys are lines of K and V.
bool fits_pages(const AttentionDesc& attention, int64_t tile_n);

}  // namespace heddle::schedule
