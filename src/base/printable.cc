#include "base/printable.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

namespace heddle {
namespace {

// A code point at the beginning of a text; length 0: the first byte is no UTF-8.
struct CodePoint {
  uint32_t value = 0;
  size_t length = 0;
};

CodePoint decode(std::string_view text) {
  const auto byte = [&](size_t at) { return static_cast<uint32_t>(static_cast<unsigned char>(text[at])); };
  const uint32_t first = byte(0);
  if (first < 0x80) return {first, 1};
  const size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc0 ? 2 : 0;
  if (length == 0 || first > 0xf4 || text.size() < length) return {};
  uint32_t value = first & (0x7fU >> length);
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {};
    value = value << 6 | (byte(i) & 0x3f);
  }
  // Each value has one spelling, the shortest; surrogates are none.
  constexpr std::array<uint32_t, 5> kLeast = {0, 0, 0x80, 0x800, 0x10000};
  if (value < kLeast[length] || value > 0x10ffff || (value >= 0xd800 && value < 0xe000)) return {};
  return {value, length};
}

// Controls, what breaks lines, what changes the direction of the text around it, what XML forbids.
bool is_hidden(uint32_t c) {
  return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x61c || c == 0x200e || c == 0x200f ||
         (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) || c == 0xfeff || (c & 0xfffe) == 0xfffe;
}

std::string escaped(uint32_t c) {
  if (c == '\n') return "\\n";
  if (c == '\t') return "\\t";
  return c < 0x80 ? fmt::format("\\x{:02x}", c) : fmt::format("\\u{{{:x}}}", c);
}

}  // namespace

std::string printable(std::string_view text, Lines lines) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const CodePoint point = decode(text);
    const size_t length = std::max<size_t>(point.length, 1);
    const bool stays = lines == Lines::kMany && (text[0] == '\n' || text[0] == '\t');
    if (point.length == 0) {
      fmt::format_to(std::back_inserter(out), "\\x{:02x}", static_cast<unsigned char>(text[0]));
    } else if (is_hidden(point.value) && !stays) {
      out += escaped(point.value);
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length);
  }
  return out;
}

size_t columns(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

std::string clipped(std::string_view text, size_t most) {
  constexpr std::string_view kRest = "...";
  if (columns(text) <= most) return std::string(text);
  size_t at = 0;
  for (size_t kept = 0; at < text.size(); ++at) {
    const bool begins = (static_cast<unsigned char>(text[at]) & 0xc0) != 0x80;
    if (begins && kept++ + kRest.size() >= most) break;
  }
  return std::string(text.substr(0, at)) + std::string(kRest.substr(0, most));
}

}  // namespace heddle
