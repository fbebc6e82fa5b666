#pragma once

#include <span>
#include <string>
#include <string_view>

#include "passes/pass.h"

namespace heddle::passes {

// What `heddle opt` does: reads textual IR, runs the named passes (none: the whole pipeline) and prints the result.
// `print_all` prints constants of any size, so that the text can be read back.
std::string optimise_text(std::string_view text, std::span<const std::string> names, const PassContext& context,
                          bool print_all = false);

// One line for each pass of the pipeline: its name and what it does.
std::string list_passes();

}  // namespace heddle::passes
