#pragma once

#include <string_view>

namespace heddle::codegen {

// The tile header of a rarely used function or type (transposes, random numbers, narrow types), which a text includes
// only if it names the identifier; "" for all other identifiers.
std::string_view header_of(std::string_view identifier);

}  // namespace heddle::codegen
