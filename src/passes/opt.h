#pragma once

#include <span>
#include <string>
#include <string_view>

#include "passes/pass.h"

namespace heddle::passes {

// Implements `heddle opt`: reads textual IR, runs the named passes (none: the whole pipeline) and prints the result
// with all elements of constants, so that it can be read back.
std::string optimise_text(std::string_view text, std::span<const std::string> names, const PassContext& context);

}  // namespace heddle::passes
