#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/dtype.h"

namespace heddle::lang {

// Element types of the tile language. An i1 takes one byte in memory. The name of an 8-bit float gives the number of
// exponent bits, the number of mantissa bits, and the exponent bias if that is not the usual one. f8e4m3b8 and
// f8e5m2b16 are the "fnuz" formats.
enum class Element : uint8_t {
  kI1,
  kI8,
  kI16,
  kI32,
  kI64,
  kU8,
  kU16,
  kU32,
  kU64,
  kF16,
  kBF16,
  kF32,
  kF64,
  kF8E4M3,
  kF8E5M2,
  kF8E4M3B8,
  kF8E4M3B15,
  kF8E5M2B16,
};
inline constexpr int kElements = static_cast<int>(Element::kF8E5M2B16) + 1;

std::string_view to_string(Element element);
std::optional<Element> parse_element(std::string_view text);

DType dtype_of(Element element);  // f8e4m3b15 has no DType of its own and gives f8e4m3
std::optional<Element> element_of(DType dtype);

int bits_of(Element element);      // 1 for i1
int64_t size_of(Element element);  // bytes in memory; 1 for i1
constexpr bool is_float(Element e) {
  return e >= Element::kF16;
}
constexpr bool is_float8(Element e) {
  return e >= Element::kF8E4M3;
}
constexpr bool is_signed_int(Element e) {  // false for i1
  return e >= Element::kI8 && e <= Element::kI64;
}
constexpr bool is_unsigned_int(Element e) {
  return e >= Element::kU8 && e <= Element::kU64;
}
constexpr bool is_int(Element e) {  // false for i1
  return is_signed_int(e) || is_unsigned_int(e);
}

// The type of a value: a scalar, a tile or a view. A tile has rank 1 or more, and its extents are known at compile
// time. A view is a window of shape `shape` into a matrix in memory. Scalars and tiles hold numbers or pointers to
// numbers.
struct Type {
  enum class Kind : uint8_t { kScalar, kTile, kView };

  Kind kind = Kind::kScalar;
  bool pointer = false;  // the value holds pointers to `element`
  Element element = Element::kI32;
  std::vector<int64_t> shape;  // empty for scalars

  static Type scalar(Element element) { return {Kind::kScalar, false, element, {}}; }
  static Type pointer_to(Element element) { return {Kind::kScalar, true, element, {}}; }
  static Type tile(std::vector<int64_t> shape, Element element) {
    return {Kind::kTile, false, element, std::move(shape)};
  }

  bool is_scalar() const { return kind == Kind::kScalar; }
  bool is_tile() const { return kind == Kind::kTile; }
  bool is_view() const { return kind == Kind::kView; }
  bool is_number() const { return !pointer && kind != Kind::kView; }
  int rank() const { return static_cast<int>(shape.size()); }
  int64_t elements() const;  // 1 for a scalar

  // Returns the same type with another shape (a scalar if `other` is empty).
  Type with_shape(std::vector<int64_t> other) const;
  Type with_element(Element other) const { return {kind, false, other, shape}; }
  Type scalar_type() const { return {Kind::kScalar, pointer, element, {}}; }

  bool operator==(const Type&) const = default;
};

// The textual form, such as "tile<128x64xptr<f16>>".
std::string to_string(const Type& type);

}  // namespace heddle::lang
