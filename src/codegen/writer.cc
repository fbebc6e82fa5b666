#include "codegen/writer.h"

#include "base/printable.h"

namespace heddle::codegen {

std::string comment_of(std::string_view text) {
  constexpr size_t kMost = 400;
  std::string shown = clipped(printable(text), kMost);
  // A line that ends in a backslash, with spaces behind it or not, goes on in the next one.
  if (const size_t last = shown.find_last_not_of(' '); last != std::string::npos && shown[last] == '\\') shown += '.';
  return "// " + shown;
}

}  // namespace heddle::codegen
