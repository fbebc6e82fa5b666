#pragma once

#include <vector>

#include "codegen/scalar/text_value.h"

namespace heddle::codegen {

// Applies the operator of `e` to arguments of equal width, none of them a literal. The condition of a select is a mask.
TextValue operation(const schedule::ExprPool& pool, const schedule::Expr& e, std::vector<TextValue> args);

}  // namespace heddle::codegen
