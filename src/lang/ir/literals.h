#pragma once

#include <vector>

#include "lang/ir/kernel.h"
#include "lang/ir/token_reader.h"

// Types and attributes in a text.
namespace heddle::lang {

Type parse_type(TokenReader& in);
std::vector<Type> parse_types(TokenReader& in);  // ": f32, i1"; empty without a colon

// Whether the brace here opens attributes and not a region.
bool starts_attributes(const TokenReader& in, bool region_may_follow);
Attributes parse_attributes(TokenReader& in);

}  // namespace heddle::lang
