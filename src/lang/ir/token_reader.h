#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "ir/text/lexer.h"

namespace heddle::lang {

using ir::Token;

// Reads the tokens of a text from front to back. Errors are kInvalidIr and give the position of a token in the text.
class TokenReader {
 public:
  explicit TokenReader(std::string_view text) {
    ir::Lexer lexer(text, kPage);
    do tokens_.push_back(lexer.next());
    while (tokens_.back().kind != Token::Kind::kEnd);
  }

  const Token& token(size_t ahead = 0) const { return tokens_[std::min(at_ + ahead, tokens_.size() - 1)]; }
  const Token& take() {
    const Token& taken = token();
    if (at_ + 1 < tokens_.size()) ++at_;
    return taken;
  }
  [[noreturn]] static void fail(const Token& where, std::string why) { ir::fail_at(where, std::move(why), kPage); }
  [[noreturn]] void expected(std::string_view what) const {
    fail(token(), fmt::format("expected {}, found {}", what, ir::describe(token())));
  }
  bool is(size_t ahead, char punctuation) const {
    return token(ahead).kind == Token::Kind::kPunctuation && token(ahead).text[0] == punctuation;
  }
  bool at(char punctuation) const { return is(0, punctuation); }
  bool at_name(std::string_view name) const { return token().kind == Token::Kind::kName && token().text == name; }
  bool accept(char punctuation) {
    if (!at(punctuation)) return false;
    take();
    return true;
  }
  void expect(char punctuation) {
    if (!accept(punctuation)) expected(fmt::format("'{}'", punctuation));
  }
  const Token& expect(Token::Kind kind, std::string_view what) {
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
  int64_t integer(std::string_view what);
  int small(std::string_view what);  // reads an integer from 0 to 2^31 - 1

 private:
  static constexpr std::string_view kPage = "docs/design/tile-language.md";
  std::vector<Token> tokens_;
  size_t at_ = 0;
};

}  // namespace heddle::lang
