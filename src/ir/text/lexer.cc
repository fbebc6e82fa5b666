#include "ir/text/lexer.h"

#include <algorithm>

#include "base/check.h"

namespace heddle::ir {
namespace {

// The text is ASCII outside strings; <cctype> depends on the locale and is undefined on negative chars.
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool is_name_char(char c) {
  return is_letter(c) || is_digit(c) || c == '.';
}
int hex_digit(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

std::string describe(const Token& token) {
  const std::string text = token.text.size() > 40 ? token.text.substr(0, 40) + "..." : token.text;
  switch (token.kind) {
    case Token::Kind::kEnd:
      return "the end of the text";
    case Token::Kind::kName:
    case Token::Kind::kPunctuation:
      return fmt::format("'{}'", text);
    case Token::Kind::kValue:
      return fmt::format("%{}", text);
    case Token::Kind::kNumber:
      return fmt::format("number {}", text);
    case Token::Kind::kString:
      return quoted(text);
  }
  return {};
}

void fail_at(const Token& token, std::string why, std::string_view page) {
  heddle::fail(ErrorCode::kInvalidIr, fmt::format("line {}, column {}", token.line, token.column), std::move(why),
               fmt::format("{} describes the textual form.", page));
}

void Lexer::advance() {
  if (text_[at_] == '\n') {
    ++line_;
    column_ = 0;
  }
  ++at_;
  ++column_;
}

void Lexer::skip_space() {
  while (!done()) {
    const char c = peek();
    if (c == ' ' || c == '\t' || c == '\r' || c == '\n') {
      advance();
    } else if (c == '/' && peek(1) == '/') {
      while (!done() && peek() != '\n') advance();
    } else {
      return;
    }
  }
}

std::string Lexer::take_name() {
  std::string name;
  while (!done() && is_name_char(peek())) {
    name += peek();
    advance();
  }
  return name;
}

// Any run of characters that a number may hold; the parser converts it and refuses what is none.
std::string Lexer::take_number() {
  std::string number;
  while (!done() && (is_name_char(peek()) || peek() == '-' || peek() == '+')) {
    number += peek();
    advance();
  }
  return number;
}

std::string Lexer::take_string(const Token& start) {
  std::string value;
  advance();
  for (;;) {
    if (done()) fail(start, "this string has no closing quote");
    const char c = peek();
    advance();
    if (c == '"') return value;
    if (c != '\\') {
      value += c;
      continue;
    }
    if (done()) fail(start, "this string has no closing quote");
    const char escape = peek();
    advance();
    if (escape == 'n') {
      value += '\n';
    } else if (escape == 't') {
      value += '\t';
    } else if (escape == '"' || escape == '\\') {
      value += escape;
    } else if (escape == 'x' && hex_digit(peek()) >= 0 && hex_digit(peek(1)) >= 0) {
      value += static_cast<char>(hex_digit(peek()) * 16 + hex_digit(peek(1)));
      advance();
      advance();
    } else {
      fail(start, "a string knows the escapes \\n \\t \\\" \\\\ \\xHH");
    }
  }
}

Token Lexer::next() {
  skip_space();
  Token token{Token::Kind::kEnd, {}, line_, column_};
  if (done()) return token;
  const char c = peek();
  if (is_letter(c)) {
    token.kind = Token::Kind::kName;
    token.text = take_name();
  } else if (is_digit(c) || c == '-' || c == '+') {
    token.kind = Token::Kind::kNumber;
    token.text = take_number();
  } else if (c == '"') {
    token.kind = Token::Kind::kString;
    token.text = take_string(token);
  } else if (c == '%') {
    token.kind = Token::Kind::kValue;
    advance();
    token.text = peek() == '"' ? take_string(token) : take_name();
    if (token.text.empty()) fail(token, "a name is expected after %");
  } else if (std::string_view("(){}[],=:@<>").find(c) != std::string_view::npos) {
    token.kind = Token::Kind::kPunctuation;
    token.text = c;
    advance();
  } else {
    fail(token, fmt::format("the character with code {} has no meaning here", static_cast<unsigned char>(c)));
  }
  return token;
}

bool is_plain_name(std::string_view text) {
  return !text.empty() && is_letter(text[0]) && std::all_of(text.begin(), text.end(), is_name_char);
}

std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (char c : text) {
    if (c == '\n') {
      result += "\\n";
    } else if (c == '\t') {
      result += "\\t";
    } else if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      result += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      result += c;
    }
  }
  return result + '"';
}

}  // namespace heddle::ir
