#pragma once

#include <vector>

#include "codegen/scalar/text_value.h"

namespace heddle::codegen {

// The operator of `e` applied to arguments of one width, none of them a literal; the condition of a select is a mask.
TextValue operation(const schedule::ExprPool& pool, const schedule::Expr& e, std::vector<TextValue> args);

}  // namespace heddle::codegen
