#pragma once

#include <fmt/format.h>

#include <charconv>
#include <deque>
#include <string>
#include <string_view>
#include <utility>

#include "ir/text/lexer.h"

namespace heddle::ir {

// Reads the tokens of a text from front to back. Errors are kInvalidIr and give the position of a token in the text.
class TokenReader {
 public:
  explicit TokenReader(std::string_view text, std::string_view page = kFormPage) : page_(page), lexer_(text, page) {}

  // The token `ahead` tokens behind the next one. References stay valid until the token is taken.
  const Token& token(size_t ahead = 0) {
    while (ahead_.size() <= ahead) ahead_.push_back(lexer_.next());
    return ahead_[ahead];
  }
  Token take() {
    token();
    Token taken = std::move(ahead_.front());
    ahead_.pop_front();
    return taken;
  }
  [[noreturn]] void fail(const Token& where, std::string why) const { fail_at(where, std::move(why), page_); }
  [[noreturn]] void expected(std::string_view what) {
    fail(token(), fmt::format("expected {}, found {}", what, describe(token())));
  }
  bool is(size_t ahead, char punctuation) {
    return token(ahead).kind == Token::Kind::kPunctuation && token(ahead).text[0] == punctuation;
  }
  bool at(char punctuation) { return is(0, punctuation); }
  bool at_name(std::string_view name) { return token().kind == Token::Kind::kName && token().text == name; }
  bool accept(char punctuation) {
    if (!at(punctuation)) return false;
    take();
    return true;
  }
  void expect(char punctuation) {
    if (!accept(punctuation)) expected(fmt::format("'{}'", punctuation));
  }
  Token expect(Token::Kind kind, std::string_view what) {
    if (token().kind != kind) expected(what);
    return take();
  }
  void expect_name(std::string_view name) {
    if (!at_name(name)) expected(fmt::format("'{}'", name));
    take();
  }
  // Parses a comma-separated list up to the closing character. Calls `item` once per element.
  template <typename F>
  void list(char close, F item) {
    if (accept(close)) return;
    do {
      item();
    } while (accept(','));
    expect(close);
  }
  template <typename T = int64_t>
  T integer(std::string_view what = "an integer") {
    const Token number = expect(Token::Kind::kNumber, what);
    T value = 0;
    const char* begin = number.text.data() + (number.text[0] == '+' ? 1 : 0);
    const char* end = number.text.data() + number.text.size();
    const auto [stop, error] = std::from_chars(begin, end, value);
    if (error != std::errc() || stop != end) fail(number, fmt::format("{} is not an integer", number.text));
    return value;
  }

 private:
  std::string_view page_;
  Lexer lexer_;
  std::deque<Token> ahead_;
};

}  // namespace heddle::ir
