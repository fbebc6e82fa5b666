#include "lang/interpret/number.h"

#include <bit>
#include <cmath>
#include <limits>

#include "base/odd.h"
#include "heddle/dtype.h"

namespace heddle::lang {
namespace {

// f8e4m3b15 is f8e4m3 with all values divided by this.
constexpr double kE4M3B15 = 256;

DType narrow_type(Element element) {
  switch (element) {
    case Element::kF16:
      return DType::kF16;
    case Element::kBF16:
      return DType::kBF16;
    case Element::kF8E5M2:
      return DType::kF8E5M2;
    case Element::kF8E4M3B8:
      return DType::kF8E4M3Fnuz;
    case Element::kF8E5M2B16:
      return DType::kF8E5M2Fnuz;
    default:
      return DType::kF8E4M3;  // and f8e4m3b15, scaled
  }
}

double scale_of(Element element) {
  return element == Element::kF8E4M3B15 ? kE4M3B15 : 1;
}

// An infinity that an f8 holds stays one.
bool saturates(double value) {
  return !std::isinf(value);
}

}  // namespace

double round_float(Element element, double value) {
  if (element == Element::kF64) return value;
  if (element == Element::kF32) return static_cast<float>(value);
  const double scale = scale_of(element);
  return heddle::round_to(narrow_type(element), value * scale) / scale;
}

double truncate_float(Element element, double value) {
  const double nearest = round_float(element, value);
  if (!(std::fabs(nearest) > std::fabs(value))) return nearest;
  if (element == Element::kF32) return std::nextafterf(static_cast<float>(nearest), 0.f);
  const uint64_t bits = encode(element, {.f = nearest});
  return decode(element, bits - 1).f;  // the code of the magnitude stands in the low bits
}

int64_t float_to_int(Element to, double value) {
  if (std::isnan(value)) return 0;
  if (to == Element::kI1) return value != 0;
  const int bits = bits_of(to);
  const double end = std::ldexp(1.0, is_signed_int(to) ? bits - 1 : bits);
  if (value >= end) {
    if (to == Element::kU64) return -1;
    return is_signed_int(to) ? static_cast<int64_t>(~uint64_t{0} >> (65 - bits)) : (int64_t{1} << bits) - 1;
  }
  if (!is_signed_int(to)) return value <= 0 ? 0 : static_cast<int64_t>(static_cast<uint64_t>(value));
  if (value < -end) return std::numeric_limits<int64_t>::min() >> (64 - bits);
  return static_cast<int64_t>(value);
}

double int_to_float(Element from, int64_t value, Element to) {
  const auto convert = [to](auto number) -> double {
    if (to == Element::kF32) return static_cast<float>(number);
    return to == Element::kF64 ? static_cast<double>(number) : round_float(to, to_odd_double(number));
  };
  return from == Element::kU64 ? convert(static_cast<uint64_t>(value)) : convert(value);
}

uint64_t encode(Element element, Cell value) {
  if (!is_float(element)) return static_cast<uint64_t>(value.i);
  if (element == Element::kF64) return std::bit_cast<uint64_t>(value.f);
  if (element == Element::kF32) return std::bit_cast<uint32_t>(static_cast<float>(value.f));
  return encode_float(narrow_type(element), value.f * scale_of(element), saturates(value.f));
}

Cell decode(Element element, uint64_t bits) {
  if (!is_float(element)) return {.i = wrap_int(element, static_cast<int64_t>(bits))};
  if (element == Element::kF64) return {.f = std::bit_cast<double>(bits)};
  if (element == Element::kF32) return {.f = std::bit_cast<float>(static_cast<uint32_t>(bits))};
  const uint32_t mask = (1u << bits_of(element)) - 1;
  return {.f = decode_float(narrow_type(element), static_cast<uint32_t>(bits) & mask) / scale_of(element)};
}

Cell poison(const Type& type) {
  if (type.pointer) return {.i = 0};
  if (is_float(type.element)) return {.f = std::numeric_limits<double>::quiet_NaN()};
  constexpr int64_t kPattern = 0x5a5a5a5a5a5a5a5a;
  return {.i = wrap_int(type.element, kPattern)};
}

}  // namespace heddle::lang
