#include "tests/fuzz/hostile/text_mutator.h"

#include <cctype>
#include <vector>

#include "ir/op.h"

namespace heddle::fuzz {
namespace {

enum class TokenKind { kNumber, kValue, kName, kString, kOther };

// A stretch of the text. Spaces belong to none.
struct Stretch {
  TokenKind kind;
  size_t at, size;
};

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.';
}

size_t end_of_word(const std::string& text, size_t at) {
  while (at < text.size() && is_word(text[at])) ++at;
  return at;
}

std::vector<Stretch> tokens(const std::string& text) {
  std::vector<Stretch> out;
  for (size_t at = 0; at < text.size();) {
    const char c = text[at];
    size_t end = at + 1;
    TokenKind kind = TokenKind::kOther;
    if (std::isspace(static_cast<unsigned char>(c)) != 0) {
      at = end;
      continue;
    }
    if (c == '%') {
      kind = TokenKind::kValue;
      end = end_of_word(text, end);
    } else if (c == '"') {
      kind = TokenKind::kString;
      while (end < text.size() && text[end] != '"') end += text[end] == '\\' ? 2 : 1;
      end = std::min(end + 1, text.size());
    } else if (std::isdigit(static_cast<unsigned char>(c)) != 0 || c == '-') {
      kind = TokenKind::kNumber;
      end = end_of_word(text, end);
    } else if (is_word(c)) {
      kind = TokenKind::kName;
      end = end_of_word(text, end);
    }
    out.push_back({kind, at, end - at});
    at = end;
  }
  return out;
}

std::string number(const std::string& old, Rng& rng) {
  static const std::vector<std::string> others = {"0",
                                                  "1",
                                                  "-1",
                                                  "2",
                                                  "3",
                                                  "7",
                                                  "16",
                                                  "33",
                                                  "1.5",
                                                  "1e400",
                                                  "nan",
                                                  "inf",
                                                  "-0",
                                                  "0x1",
                                                  "1e-46",
                                                  "100000",
                                                  "4294967296",
                                                  "9223372036854775807",
                                                  "-9223372036854775808",
                                                  "18446744073709551616",
                                                  "1099511627776"};
  if (rng.chance(0.5)) return rng.pick(others);
  try {
    const auto near = static_cast<uint64_t>(std::stoll(old)) + static_cast<uint64_t>(rng.range(-2, 2));
    return std::to_string(static_cast<int64_t>(near));
  } catch (const std::exception&) {
    return rng.pick(others);
  }
}

std::string name(Rng& rng) {
  static const std::vector<std::string> others = {
      "f32",   "f16",    "bf16",     "f64",  "i64",   "i32",  "i8",    "u8",   "bool", "i4",   "u2",    "f8e4m3",
      "graph", "return", "constant", "dims", "shape", "true", "false", "loop", "if",   "kind", "dense", "string"};
  if (rng.chance(0.5)) return rng.pick(others);
  return std::string(ir::to_string(static_cast<ir::Op>(rng.range(0, static_cast<int64_t>(ir::Op::kIf)))));
}

std::string string(Rng& rng) {
  static const std::vector<std::string> others = {"sum", "max", "mean", "none", "add",  "edge", "reflect", "wrap",
                                                  "",    "lt",  "\\\"", "\\n",  "\xff", "prod", "argmax",  "floor"};
  return "\"" + rng.pick(others) + "\"";
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
    lines.push_back(text.substr(at, end - at));
    at = end;
  }
  if (lines.empty()) lines.emplace_back();
  return lines;
}

std::string replaced(const Stretch& token, const std::string& text, const std::vector<Stretch>& all, Rng& rng) {
  switch (token.kind) {
    case TokenKind::kNumber:
      return number(text.substr(token.at, token.size), rng);
    case TokenKind::kName:
      return name(rng);
    case TokenKind::kString:
      return string(rng);
    case TokenKind::kValue:
      for (int attempt = 0; attempt < 30; ++attempt) {
        const Stretch& other = rng.pick(all);
        if (other.kind == TokenKind::kValue) return text.substr(other.at, other.size);
      }
      return "%nowhere";
    default: {
      static const std::vector<std::string> marks = {"{", "}", "[", "]", "(", ")", ",", ":", "=", "", "%", "\""};
      return rng.pick(marks);
    }
  }
}

void edit_token(std::string& text, Rng& rng) {
  const std::vector<Stretch> all = tokens(text);
  if (all.empty()) return;
  // Punctuation is a half of all tokens and its damage soon told.
  Stretch token = rng.pick(all);
  for (int i = 0; i < 4 && token.kind == TokenKind::kOther; ++i) token = rng.pick(all);
  text.replace(token.at, token.size, replaced(token, text, all, rng));
}

// The same number or name everywhere, so that the graph may be right with it.
void edit_everywhere(std::string& text, Rng& rng) {
  const std::vector<Stretch> all = tokens(text);
  if (all.empty()) return;
  Stretch token = rng.pick(all);
  for (int i = 0; i < 20 && token.kind != TokenKind::kNumber && token.kind != TokenKind::kName; ++i)
    token = rng.pick(all);
  const std::string from = text.substr(token.at, token.size), to = replaced(token, text, all, rng);
  std::string out;
  size_t at = 0;
  for (const Stretch& t : all) {
    out += text.substr(at, t.at - at);
    const std::string own = text.substr(t.at, t.size);
    out += own == from ? to : own;
    at = t.at + t.size;
  }
  text = out + text.substr(at);
}

void edit_lines(std::string& text, const std::string& other, Rng& rng) {
  std::vector<std::string> lines = lines_of(text);
  const auto at = lines.begin() + rng.range(0, static_cast<int64_t>(lines.size()) - 1);
  switch (rng.range(0, 3)) {
    case 0:
      lines.erase(at);
      break;
    case 1: {
      const std::string copy = *at;
      lines.insert(at, copy);
      break;
    }
    case 2:
      std::swap(*at, lines[static_cast<size_t>(rng.range(0, static_cast<int64_t>(lines.size()) - 1))]);
      break;
    default:
      lines.insert(at, rng.pick(lines_of(other)));
  }
  text.clear();
  for (const std::string& line : lines) text += line;
}

void nest(std::string& text, Rng& rng) {
  static const std::vector<std::string> marks = {"[", "{",   "(", "graph() {", "{body = graph() { %0 = loop()",
                                                 "-", "\"\\"};
  std::string deep;
  const std::string& mark = rng.pick(marks);
  for (int64_t depth = rng.chance(0.7) ? rng.range(1, 60) : 20000; depth > 0; --depth) deep += mark;
  const std::vector<Stretch> all = tokens(text);
  text.insert(all.empty() ? 0 : rng.pick(all).at, deep);
}

void edit_bytes(std::string& text, Rng& rng) {
  if (text.empty()) return;
  const auto at = static_cast<size_t>(rng.range(0, static_cast<int64_t>(text.size()) - 1));
  switch (rng.range(0, 3)) {
    case 0:
      text[at] = static_cast<char>(rng.range(0, 255));
      return;
    case 1:
      text.resize(at);
      return;
    case 2:
      text.insert(at, text.substr(at, static_cast<size_t>(rng.range(1, 40))));
      return;
    default:
      text.erase(at, static_cast<size_t>(rng.range(1, 40)));
  }
}

}  // namespace

std::string mutate_text(const std::string& text, const std::string& other, Rng& rng) {
  std::string out = text;
  for (int64_t edits = rng.chance(0.15) ? 8 : rng.range(1, 3); edits > 0; --edits) {
    const double drawn = rng.real(0, 1);
    if (drawn < 0.5) {
      edit_token(out, rng);
    } else if (drawn < 0.78) {
      edit_everywhere(out, rng);
    } else if (drawn < 0.92) {
      edit_lines(out, other, rng);
    } else if (drawn < 0.95) {
      nest(out, rng);
    } else {
      edit_bytes(out, rng);
    }
  }
  return out;
}

}  // namespace heddle::fuzz
