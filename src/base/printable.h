#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace heddle {

// kMany keeps line feeds and tabs; kOne escapes them too (for a name or a table cell).
enum class Lines : bool { kOne, kMany };

// Makes `text`, whose names may come from a model, safe to show on a terminal, in valid UTF-8. Bytes that are not UTF-8
// become \xNN, control characters \n, \t, \xNN or \u{N}. Characters that reorder or break lines are escaped, too.
std::string printable(std::string_view text, Lines lines = Lines::kOne);

// The number of code points of valid UTF-8, which is its width if every character takes one column.
size_t columns(std::string_view text);

// The first `most` columns of valid UTF-8. If the text is longer, the last three of them are "...".
std::string clipped(std::string_view text, size_t most);

}  // namespace heddle
