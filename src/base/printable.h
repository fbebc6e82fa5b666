#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace heddle {

// How printable() treats line feeds and tabs. kMany keeps them. kOne escapes them too, for a name or a table cell.
enum class Lines : bool { kOne, kMany };

// Returns `text` as valid UTF-8 that is safe to show on a terminal; names in it may come from an untrusted model. Bytes
// that are not UTF-8 become \xNN. Control characters become \n, \t, \xNN or \u{N}. Characters that reorder text or
// break lines are escaped, too.
std::string printable(std::string_view text, Lines lines = Lines::kOne);

// The number of code points in valid UTF-8. This is the display width if every character is one column wide.
size_t columns(std::string_view text);

// Returns at most the first `most` columns of valid UTF-8. If the text is longer, the result ends in "..." and is
// `most` columns wide.
std::string clipped(std::string_view text, size_t most);

}  // namespace heddle
