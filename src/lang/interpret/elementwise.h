#pragma once

#include <span>

#include "lang/interpret/number.h"
#include "lang/ir/kernel.h"

namespace heddle::lang {

// Evaluates an elementwise op for `lanes` lanes at once. `types` are the types of the operands; the shapes in `types`
// are ignored.
Cells evaluate_elementwise(const Op& op, std::span<const Type* const> types, const Type& result,
                           std::span<const Cells* const> operands, size_t lanes);

}  // namespace heddle::lang
