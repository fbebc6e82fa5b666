#pragma once

#include <vector>

#include "lang/ir/kernel.h"
#include "lang/ir/token_reader.h"

// Parsers for types and attributes in the text format.
namespace heddle::lang {

Type parse_type(TokenReader& in);
std::vector<Type> parse_types(TokenReader& in);  // parses ": f32, i1"; returns an empty list if there is no colon

// True if the next token is a brace that opens attributes rather than a region.
bool starts_attributes(const TokenReader& in, bool region_may_follow);
Attributes parse_attributes(TokenReader& in);

}  // namespace heddle::lang
