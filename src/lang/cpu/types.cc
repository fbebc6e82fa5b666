#include "lang/cpu/types.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "lang/interpret/number.h"

namespace heddle::lang::cpu {

bool is_mask(const Type& type) {
  return !type.pointer && type.element == Element::kI1;
}

bool is_rounded(const Type& type) {
  return !type.pointer && is_float(type.element) && bits_of(type.element) < 32;
}

std::string lane_type(const Type& type) {
  if (type.pointer) return "int64_t";
  const int bits = bits_of(type.element);
  if (is_float(type.element)) return bits == 64 ? "double" : "float";
  return fmt::format("{}int{}_t", is_unsigned_int(type.element) ? "u" : "", bits);
}

std::string buffer_type(const Type& type) {
  return is_mask(type) ? "int32_t" : lane_type(type);
}

int64_t buffer_size(const Type& type) {
  if (type.pointer) return 8;
  return is_mask(type) || is_rounded(type) ? 4 : size_of(type.element);
}

std::string memory_type(Element element) {
  switch (element) {
    case Element::kI1:
      return "uint8_t";
    case Element::kF16:
      return "half";
    case Element::kBF16:
      return "bfloat";
    case Element::kF8E4M3B8:
      return "f8e4m3fnuz";
    case Element::kF8E5M2B16:
      return "f8e5m2fnuz";
    case Element::kF8E4M3:
    case Element::kF8E5M2:
    case Element::kF8E4M3B15:
      return std::string(to_string(element));
    default:
      return lane_type(Type::scalar(element));
  }
}

std::string literal(const Attribute& value, const Type& type) {
  if (is_mask(type)) return value.integer != 0 ? "mask<4, 1>{{-1}}" : "mask<4, 1>{{0}}";
  const std::string lanes = lane_type(type);
  std::string number;
  if (!type.pointer && is_float(type.element)) {
    const double rounded = round_float(type.element, value.number);
    if (std::isnan(rounded)) {
      number = R"(__builtin_nan(""))";
    } else if (std::isinf(rounded)) {
      number = rounded < 0 ? "-__builtin_inf()" : "__builtin_inf()";
    } else if (rounded == std::trunc(rounded) && std::fabs(rounded) < 1e6 && !std::signbit(rounded)) {
      number = fmt::format("{}", static_cast<int64_t>(rounded));
    } else {
      number = fmt::format("{:a}", rounded);
    }
  } else if (value.beyond_signed) {
    number = fmt::format("{}u", static_cast<uint64_t>(value.integer));
  } else if (value.integer == std::numeric_limits<int64_t>::min()) {
    number = "-9223372036854775807 - 1";
  } else {
    number = fmt::format("{}", value.integer);
  }
  return fmt::format("vec<{0}, 1>{{{0}({1})}}", lanes, number);
}

}  // namespace heddle::lang::cpu
