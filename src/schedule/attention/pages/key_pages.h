#pragma once

#include "schedule/attention/describe.h"

namespace heddle::schedule {

// If the form has pages, describes the keys and values of `desc` as pages of a pool. The operands of `desc` must
// already be set. Throws kUnsupportedOperator if kernels do not support these pages.
void set_pages(AttentionDesc& desc, const AttentionForm& form, const AttentionValues& values);

// True if tiles of `tile_n` keys fit the pages, or if the keys are not in pages. A tile must be inside one page, or it
// must consist of several whole pages. In the second case the elements of each key must be contiguous in K and in V.
bool fits_pages(const AttentionDesc& attention, int64_t tile_n);

}  // namespace heddle::schedule
