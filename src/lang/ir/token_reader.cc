#include "lang/ir/token_reader.h"

#include <charconv>
#include <limits>

namespace heddle::lang {

int64_t TokenReader::integer(std::string_view what) {
  const Token& number = expect(Token::Kind::kNumber, what);
  int64_t value = 0;
  const char *begin = number.text.data(), *end = begin + number.text.size();
  const auto [stop, error] = std::from_chars(begin, end, value);
  if (error != std::errc() || stop != end) {
    fail(number, fmt::format("{} is no integer of 64 bits", ir::describe(number)));
  }
  return value;
}

int TokenReader::small(std::string_view what) {
  const Token& number = token();
  const int64_t value = integer(what);
  if (value < 0 || value > std::numeric_limits<int>::max()) fail(number, fmt::format("{} is no {}", value, what));
  return static_cast<int>(value);
}

}  // namespace heddle::lang
