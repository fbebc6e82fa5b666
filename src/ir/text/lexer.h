#pragma once

#include <string>
#include <string_view>
#include <utility>

namespace heddle::ir {

// A token of the textual IR or of the tile language's text form.
struct Token {
  enum class Kind { kEnd, kName, kValue, kNumber, kString, kPunctuation };
  Kind kind = Kind::kEnd;
  std::string text;  // unescaped; without the % if kValue, one character if kPunctuation
  int line = 1, column = 1;
};

// The description of a token in messages: "'{'", "number 12", "end of text".
std::string describe(const Token& token);

// Throws kInvalidIr with the token's position: "line 3, column 7". `page` is the documentation page of the text form.
inline constexpr std::string_view kFormPage = "docs/design/ir.md";
[[noreturn]] void fail_at(const Token& token, std::string why, std::string_view page = kFormPage);

class Lexer {
 public:
  explicit Lexer(std::string_view text, std::string_view page = kFormPage) : text_(text), page_(page) {}
  Token next();

 private:
  char peek(size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  bool done() const { return at_ >= text_.size(); }
  void advance();
  void skip_space();
  std::string take_name();
  std::string take_number();
  std::string take_string(const Token& start);

  [[noreturn]] void fail(const Token& token, std::string why) const { fail_at(token, std::move(why), page_); }

  std::string_view text_, page_;
  size_t at_ = 0;
  int line_ = 1, column_ = 1;
};

// True if `text` can be written as a name without quotes: [A-Za-z_][A-Za-z0-9_.]*
bool is_plain_name(std::string_view text);
// Puts `text` in quotes and escapes `"`, `\` and control characters.
std::string quoted(std::string_view text);

}  // namespace heddle::ir
