#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace heddle {

// Whether line feeds and tabs stay as they are (kMany) or are escaped too (kOne: a name, a cell of a table).
enum class Lines : bool { kOne, kMany };

// `text`, whose names may come from a model, as text that a terminal shows and does not obey, in valid UTF-8: bytes
// that are no UTF-8 become \xNN, control characters \n, \t, \xNN or \u{N}, and so do characters that reorder or break
// lines.
std::string printable(std::string_view text, Lines lines = Lines::kOne);

// Code points of valid UTF-8: the columns that it takes where every character is one wide.
size_t columns(std::string_view text);

// The first `most` columns of valid UTF-8, the last three of them "..." where something is left out.
std::string clipped(std::string_view text, size_t most);

}  // namespace heddle
