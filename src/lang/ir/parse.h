#pragma once

#include <string_view>

#include "lang/ir/kernel.h"

namespace heddle::lang {

// Parses a kernel (docs/design/tile-language.md). Throws kInvalidIr with the line and column of the text. Does not
// verify the kernel (verify.h).
Kernel parse(std::string_view text);

// Does the same as parse(), then verify().
Kernel parse_and_verify(std::string_view text);

}  // namespace heddle::lang
