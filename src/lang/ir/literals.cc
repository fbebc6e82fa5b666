#include "lang/ir/literals.h"

#include <charconv>
#include <cmath>

namespace heddle::lang {
namespace {

Element element(const TokenReader& in, const Token& where, std::string_view text) {
  const auto found = parse_element(text);
  if (!found) in.fail(where, fmt::format("'{}' is no element type", text));
  return *found;
}

Type parse_pointee(TokenReader& in, const Token& where) {
  in.expect('<');
  const Token word = in.expect(Token::Kind::kName, "an element type");
  const Type type = Type::pointer_to(element(in, where, word.text));
  in.expect('>');
  return type;
}

Type parse_shaped(TokenReader& in, const Token& word) {
  in.expect('<');
  const Token extents = in.expect(Token::Kind::kNumber, "extents and an element type, such as 128x64xf16");
  std::vector<int64_t> shape;
  std::string_view rest = extents.text;
  for (size_t x = rest.find('x'); x != std::string_view::npos; x = rest.find('x')) {
    int64_t extent = 0;
    const auto [stop, error] = std::from_chars(rest.data(), rest.data() + x, extent);
    if (error != std::errc() || stop != rest.data() + x || extent < 1) {
      in.fail(extents, fmt::format("'{}' is no extent", rest.substr(0, x)));
    }
    shape.push_back(extent);
    rest.remove_prefix(x + 1);
  }
  Type type = rest == "ptr" ? parse_pointee(in, extents) : Type::scalar(element(in, extents, rest));
  in.expect('>');
  if (shape.empty()) in.fail(extents, "a tile has an extent at least");
  type.shape = std::move(shape);
  type.kind = word.text == "tile" ? Type::Kind::kTile : Type::Kind::kView;
  if (type.is_view() && type.pointer) in.fail(extents, "a view is of numbers");
  return type;
}

// "1.5", "-inf", "1e-3", "0x1.8p-3".
double parse_float(const TokenReader& in, const Token& token) {
  std::string_view text = token.text;
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  if (text == "inf") return negative ? -HUGE_VAL : HUGE_VAL;
  const bool hex = text.starts_with("0x");
  if (hex) text.remove_prefix(2);
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] =
      std::from_chars(text.data(), end, value, hex ? std::chars_format::hex : std::chars_format::general);
  if (stop != end || text.empty() || (error != std::errc() && error != std::errc::result_out_of_range)) {
    in.fail(token, fmt::format("{} is no number", ir::describe(token)));
  }
  if (error == std::errc::result_out_of_range) {
    in.fail(token, fmt::format("{} is out of the range of f64", ir::describe(token)));
  }
  return negative ? -value : value;
}

Attribute parse_number(const TokenReader& in, const Token& token) {
  const char *begin = token.text.data(), *end = begin + token.text.size();
  int64_t value = 0;
  if (const auto [stop, error] = std::from_chars(begin, end, value); error == std::errc() && stop == end) {
    return Attribute::of(value);
  }
  uint64_t large = 0;
  if (const auto [stop, error] = std::from_chars(begin, end, large); error == std::errc() && stop == end) {
    Attribute attribute = Attribute::of(static_cast<int64_t>(large));
    attribute.beyond_signed = true;
    attribute.number = static_cast<double>(large);
    return attribute;
  }
  return Attribute::of_number(parse_float(in, token));
}

Attribute parse_attribute(TokenReader& in) {
  if (in.accept('[')) {
    std::vector<int64_t> values;
    in.list(']', [&] { values.push_back(in.integer()); });
    return Attribute::of(std::move(values));
  }
  const Token value = in.take();
  if (value.kind == Token::Kind::kString) return Attribute::string(value.text);
  if (value.kind == Token::Kind::kName && (value.text == "inf" || value.text == "nan")) {
    Attribute number = Attribute::of_number(value.text == "inf" ? HUGE_VAL : std::nan(""));
    number.text = value.text;  // where a word is wanted: padding = nan
    return number;
  }
  if (value.kind == Token::Kind::kName) return Attribute::word(value.text);
  if (value.kind != Token::Kind::kNumber) {
    in.fail(value, fmt::format("expected the value of an attribute, found {}", ir::describe(value)));
  }
  return parse_number(in, value);
}

}  // namespace

Type parse_type(TokenReader& in) {
  const Token word = in.expect(Token::Kind::kName, "a type");
  if (word.text == "ptr") return parse_pointee(in, word);
  if (word.text == "tile" || word.text == "view") return parse_shaped(in, word);
  return Type::scalar(element(in, word, word.text));
}

std::vector<Type> parse_types(TokenReader& in) {
  std::vector<Type> types;
  if (!in.accept(':')) return types;
  do types.push_back(parse_type(in));
  while (in.accept(','));
  return types;
}

// Whether the brace here opens attributes and not a region.
bool starts_attributes(TokenReader& in, bool region_may_follow) {
  return (in.token(1).kind == Token::Kind::kName && in.is(2, '=')) || (!region_may_follow && in.is(1, '}'));
}

Attributes parse_attributes(TokenReader& in) {
  Attributes attributes;
  in.expect('{');
  in.list('}', [&] {
    const Token name = in.expect(Token::Kind::kName, "the name of an attribute");
    if (attributes.find(name.text) != nullptr) in.fail(name, fmt::format("attribute {} stands twice", name.text));
    in.expect('=');
    attributes.set(name.text, parse_attribute(in));
  });
  return attributes;
}

}  // namespace heddle::lang
