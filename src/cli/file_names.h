#pragma once

#include <string>
#include <vector>

namespace heddle::cli {

// Returns a file name for each output of a model. The names are distinct, and none contains a folder. `/`, NUL and
// other characters that do not belong in a file name become `_`, and long names are truncated. If several outputs map
// to the same file name, the output with exactly that name keeps it, and the others get the suffixes -2, -3, ...
std::vector<std::string> output_files(const std::vector<std::string>& outputs);

}  // namespace heddle::cli
