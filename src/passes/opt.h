#pragma once

#include <span>
#include <string>
#include <string_view>

#include "passes/pass.h"

namespace heddle::passes {

// Implements `heddle opt`: reads textual IR, runs the passes `names` and returns the resulting IR as text. Without
// names, it runs the whole pipeline. The text has all elements of constants, so that it can be parsed again.
std::string optimise_text(std::string_view text, std::span<const std::string> names, const PassContext& context);

}  // namespace heddle::passes
