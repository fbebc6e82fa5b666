#include "lang/interpret/number.h"

#include <bit>
#include <cmath>
#include <limits>

#include "base/odd.h"
#include "ir/ops/values.h"

namespace heddle::lang {
namespace {

// f8e4m3b15 is f8e4m3 with all values divided by this.
constexpr double kE4M3B15 = 256;

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
  return heddle::round_to(dtype_of(element), value * scale) / scale;
}

double truncate_float(Element element, double value) {
  const double nearest = round_float(element, value);
  if (!(std::fabs(nearest) > std::fabs(value))) return nearest;
  if (element == Element::kF32) return std::nextafterf(static_cast<float>(nearest), 0.f);
  const uint64_t bits = encode(element, {.f = nearest});
  return decode(element, bits - 1).f;  // the code of the magnitude stands in the low bits
}

int64_t float_to_int(Element to, double value) {
  return to == Element::kI1 ? value != 0 : ir::truncated(dtype_of(to), value);
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
  return encode_float(dtype_of(element), value.f * scale_of(element), saturates(value.f));
}

Cell decode(Element element, uint64_t bits) {
  if (!is_float(element)) return {.i = wrap_int(element, static_cast<int64_t>(bits))};
  if (element == Element::kF64) return {.f = std::bit_cast<double>(bits)};
  if (element == Element::kF32) return {.f = std::bit_cast<float>(static_cast<uint32_t>(bits))};
  const uint32_t mask = (1u << bits_of(element)) - 1;
  return {.f = decode_float(dtype_of(element), static_cast<uint32_t>(bits) & mask) / scale_of(element)};
}

Cell poison(const Type& type) {
  if (type.pointer) return {.i = 0};
  if (is_float(type.element)) return {.f = std::numeric_limits<double>::quiet_NaN()};
  constexpr int64_t kPattern = 0x5a5a5a5a5a5a5a5a;
  return {.i = wrap_int(type.element, kPattern)};
}

}  // namespace heddle::lang
