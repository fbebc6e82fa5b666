#pragma once

#include <string>
#include <string_view>
#include <utility>

namespace heddle::ir {

// Tokens of the textual IR and of the text of the tile language.
struct Token {
  enum class Kind { kEnd, kName, kValue, kNumber, kString, kPunctuation };
  Kind kind = Kind::kEnd;
  std::string text;  // unescaped; kValue without its %, kPunctuation one character
  int line = 1, column = 1;
};

// The name of a token in messages: "'{'", "number 12", "end of text".
std::string describe(const Token& token);

// Throws kInvalidIr with the token's position: "line 3, column 7". `page` documents the textual form.
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

// True if `text` is a name that needs no quotes: [A-Za-z_][A-Za-z0-9_.]*
bool is_plain_name(std::string_view text);
// `text` in quotes, with `"`, `\` and control characters escaped.
std::string quoted(std::string_view text);

}  // namespace heddle::ir
