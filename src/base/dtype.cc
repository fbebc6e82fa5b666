#include "heddle/dtype.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "base/check.h"

namespace heddle {
namespace {

struct Info {
  DType type;
  std::string_view name;
  uint8_t bytes, bits;
};

constexpr std::array kInfo = {
    Info{DType::kF64, "f64", 8, 64},      Info{DType::kF32, "f32", 4, 32},
    Info{DType::kF16, "f16", 2, 16},      Info{DType::kBF16, "bf16", 2, 16},
    Info{DType::kF8E4M3, "f8e4m3", 1, 8}, Info{DType::kF8E4M3Fnuz, "f8e4m3fnuz", 1, 8},
    Info{DType::kF8E5M2, "f8e5m2", 1, 8}, Info{DType::kF8E5M2Fnuz, "f8e5m2fnuz", 1, 8},
    Info{DType::kF8E8M0, "f8e8m0", 1, 8}, Info{DType::kF4E2M1, "f4e2m1", 1, 4},
    Info{DType::kI64, "i64", 8, 64},      Info{DType::kI32, "i32", 4, 32},
    Info{DType::kI16, "i16", 2, 16},      Info{DType::kI8, "i8", 1, 8},
    Info{DType::kI4, "i4", 1, 4},         Info{DType::kI2, "i2", 1, 2},
    Info{DType::kU64, "u64", 8, 64},      Info{DType::kU32, "u32", 4, 32},
    Info{DType::kU16, "u16", 2, 16},      Info{DType::kU8, "u8", 1, 8},
    Info{DType::kU4, "u4", 1, 4},         Info{DType::kU2, "u2", 1, 2},
    Info{DType::kBool, "bool", 1, 8},     Info{DType::kString, "string", 0, 0},
};

const Info& info(DType type) {
  return kInfo[static_cast<size_t>(type)];
}

// A binary floating format: exponent and mantissa bits, bias, and how its top codes are used.
struct Format {
  int exponent_bits, mantissa_bits, bias;
  bool infinity;  // the top exponent holds infinities and NaN, as in IEEE 754
  uint32_t max;   // code of the largest finite number (without the sign)
  uint32_t nan;   // code of the NaN that we write; 0 where the format has none
  bool fnuz;      // no negative zero: its code is the NaN
};

Format format(DType type) {
  switch (type) {
    case DType::kF16:
      return {5, 10, 15, true, 0x7bff, 0x7e00, false};
    case DType::kBF16:
      return {8, 7, 127, true, 0x7f7f, 0x7fc0, false};
    case DType::kF8E4M3:
      return {4, 3, 7, false, 0x7e, 0x7f, false};
    case DType::kF8E4M3Fnuz:
      return {4, 3, 8, false, 0x7f, 0x80, true};
    case DType::kF8E5M2:
      return {5, 2, 15, true, 0x7b, 0x7f, false};
    case DType::kF8E5M2Fnuz:
      return {5, 2, 16, false, 0x7f, 0x80, true};
    case DType::kF4E2M1:
      return {2, 1, 1, false, 0x7, 0, false};
    default:
      break;
  }
  HEDDLE_CHECK(false, "{} is no narrow floating type", to_string(type));
  return {};
}

double decode_magnitude(const Format& f, uint32_t code) {
  const int exponent = static_cast<int>(code >> f.mantissa_bits);
  const uint32_t mantissa = code & ((1u << f.mantissa_bits) - 1);
  if (exponent == 0) return std::ldexp(mantissa, 1 - f.bias - f.mantissa_bits);
  return std::ldexp((1u << f.mantissa_bits) + mantissa, exponent - f.bias - f.mantissa_bits);
}

// The scale-only type: powers of two from 2^-127 to 2^127, 0xff is NaN.
uint32_t encode_e8m0(double value) {
  if (!(value > 0)) return value == 0 ? 0 : 0xff;
  if (std::isinf(value)) return 0xfe;
  const double exponent = std::round(std::log2(value)) + 127;
  return static_cast<uint32_t>(std::clamp(exponent, 0.0, 254.0));
}

}  // namespace

std::string_view to_string(DType type) {
  return info(type).name;
}

std::optional<DType> parse_dtype(std::string_view text) {
  for (const Info& i : kInfo) {
    if (i.name == text) return i.type;
  }
  return std::nullopt;
}

size_t size_of(DType type) {
  return info(type).bytes;
}
int bits_of(DType type) {
  return info(type).bits;
}
bool is_float(DType type) {
  return type <= DType::kF4E2M1;
}
bool is_signed_int(DType type) {
  return type >= DType::kI64 && type <= DType::kI2;
}
bool is_unsigned_int(DType type) {
  return type >= DType::kU64 && type <= DType::kU2;
}

uint32_t encode_float(DType type, double value, bool saturate) {
  if (type == DType::kF8E8M0) return encode_e8m0(value);
  const Format f = format(type);
  const uint32_t sign_bit = 1u << (f.exponent_bits + f.mantissa_bits);
  const uint32_t sign = std::signbit(value) ? sign_bit : 0;
  if (std::isnan(value)) return f.fnuz ? f.nan : (sign | f.nan);
  const double magnitude = std::fabs(value);
  const bool half = type == DType::kF16 || type == DType::kBF16;
  const uint32_t overflow = half ? (f.max + 1) : saturate || f.nan == 0 ? f.max : f.infinity ? f.max + 1 : f.nan;
  const auto signed_code = [&](uint32_t code) { return f.fnuz && (code == 0 || code == f.nan) ? code : sign | code; };
  if (std::isinf(magnitude)) return signed_code(overflow);
  int exponent = 0;
  std::frexp(magnitude, &exponent);  // magnitude = m * 2^exponent, m in [0.5, 1)
  const int unit = std::max(exponent - 1, 1 - f.bias) - f.mantissa_bits;
  const double steps = std::nearbyint(std::ldexp(magnitude, -unit));
  const double rounded = std::ldexp(steps, unit);
  if (rounded > decode_magnitude(f, f.max)) return signed_code(overflow);
  if (rounded == 0) return signed_code(0);
  std::frexp(rounded, &exponent);
  if (exponent - 1 < 1 - f.bias)
    return signed_code(static_cast<uint32_t>(std::ldexp(rounded, f.bias - 1 + f.mantissa_bits)));
  const auto mantissa =
      static_cast<uint32_t>(std::ldexp(rounded, f.mantissa_bits - (exponent - 1))) - (1u << f.mantissa_bits);
  return signed_code((static_cast<uint32_t>(exponent - 1 + f.bias) << f.mantissa_bits) | mantissa);
}

double decode_float(DType type, uint32_t bits) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  if (type == DType::kF8E8M0) return bits == 0xff ? kNan : std::ldexp(1.0, static_cast<int>(bits) - 127);
  const Format f = format(type);
  if (f.fnuz && bits == f.nan) return kNan;
  const uint32_t sign_bit = 1u << (f.exponent_bits + f.mantissa_bits);
  const uint32_t code = bits & (sign_bit - 1);
  const double sign = (bits & sign_bit) ? -1.0 : 1.0;
  if (f.infinity && code == f.max + 1) return sign * std::numeric_limits<double>::infinity();
  if (code > f.max) return kNan;
  return sign * decode_magnitude(f, code);
}

double round_to(DType type, double value, bool saturate) {
  if (type == DType::kF64) return value;
  if (type == DType::kF32) return static_cast<float>(value);
  return decode_float(type, encode_float(type, value, saturate));
}

}  // namespace heddle
