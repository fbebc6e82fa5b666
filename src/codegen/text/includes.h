#pragma once

#include <string_view>

namespace heddle::codegen {

// The tile header that declares a rarely used function or type (transposes, random numbers, narrow types). A generated
// text includes the header only if it uses the identifier. "" for all other identifiers.
std::string_view header_of(std::string_view identifier);

}  // namespace heddle::codegen
