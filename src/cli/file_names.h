#pragma once

#include <string>
#include <vector>

namespace heddle::cli {

// A file name for each output of a model, all different and none with a folder in it, whatever the names are: `/`, NUL
// and other characters that a file name should not have become `_`, long names are cut. Of outputs that would share a
// file the one that was spelt so has it; the others get -2, -3, ...
std::vector<std::string> output_files(const std::vector<std::string>& outputs);

}  // namespace heddle::cli
