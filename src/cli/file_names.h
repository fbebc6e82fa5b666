#pragma once

#include <string>
#include <vector>

namespace heddle::cli {

// A file name for each output of a model, all different and none with a folder in it. `/`, NUL and other characters
// that a file name should not have become `_`, and long names are cut. If outputs would share a file name, the output
// of exactly that name gets it. The others get -2, -3, ...
std::vector<std::string> output_files(const std::vector<std::string>& outputs);

}  // namespace heddle::cli
