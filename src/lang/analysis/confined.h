#pragma once

#include "lang/analysis/windows.h"
#include "lang/ir/kernel.h"

namespace heddle::lang {

// True if elements of a tile with start + index >= size along `dim` never reach memory, so that they may hold anything.
// This holds if all users are products, elementwise ops and loops, which keep rows separate, and stores that skip rows
// beyond the size.
bool is_confined(const Kernel& kernel, const WindowAnalysis& windows, ValueId tile, size_t dim, const Polynomial& start,
                 const Polynomial& size);

}  // namespace heddle::lang
