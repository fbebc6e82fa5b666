#pragma once

#include <vector>

#include "ir/text/token_reader.h"
#include "lang/ir/kernel.h"

// Parsers for types and attributes in the text format.
namespace heddle::lang {

using ir::Token;
using ir::TokenReader;

Type parse_type(TokenReader& in);
std::vector<Type> parse_types(TokenReader& in);  // parses ": f32, i1"; returns an empty list if there is no colon

// True if the next token is a brace that opens attributes rather than a region.
bool starts_attributes(TokenReader& in, bool region_may_follow);
Attributes parse_attributes(TokenReader& in);

}  // namespace heddle::lang
