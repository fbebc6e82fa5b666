#include "codegen/scalar/text_value.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>

namespace heddle::codegen {

std::string_view storage_type(DType dtype) {
  switch (dtype) {
    case DType::kF64:
      return "double";
    case DType::kF32:
      return "float";
    case DType::kF16:
      return "tile::half";
    case DType::kBF16:
      return "tile::bfloat";
    case DType::kF8E4M3:
      return "tile::f8e4m3";
    case DType::kF8E4M3Fnuz:
      return "tile::f8e4m3fnuz";
    case DType::kF8E5M2:
      return "tile::f8e5m2";
    case DType::kF8E5M2Fnuz:
      return "tile::f8e5m2fnuz";
    case DType::kF8E8M0:
      return "tile::f8e8m0";
    case DType::kF4E2M1:
      return "tile::f4e2m1";
    case DType::kI64:
      return "int64_t";
    case DType::kI32:
      return "int32_t";
    case DType::kI16:
      return "int16_t";
    case DType::kI8:
    case DType::kI4:
    case DType::kI2:
      return "int8_t";
    case DType::kU64:
      return "uint64_t";
    case DType::kU32:
      return "uint32_t";
    case DType::kU16:
      return "uint16_t";
    default:
      return "uint8_t";
  }
}

std::string_view computed_type(DType dtype) {
  return storage_type(schedule::compute_dtype(dtype));
}

std::string pointer_type(const schedule::Operand& operand) {
  const bool input = operand.role == schedule::Operand::Role::kInput;
  return fmt::format("{}{}*", input ? "const " : "", storage_type(operand.dtype));
}

TextValue loaded_value(const std::string& load, DType dtype, bool wide) {
  if (dtype != DType::kBool) return {load, dtype, wide};
  return {fmt::format("tile::to_mask({})", load), dtype, wide, 1};
}

std::string widened(const TextValue& v, const std::string& width) {
  if (v.literal) {
    const std::string splat = fmt::format("tile::splat<{}>({})", width, v.text);
    return v.dtype == DType::kBool ? fmt::format("tile::to_mask({})", splat) : splat;
  }
  if (v.wide || width == "1") return v.text;
  if (v.mask_bytes > 0) return fmt::format("tile::splat_mask<{}>({})", width, v.text);
  return fmt::format("tile::splat<{}>({}.v)", width, v.text);
}

std::string as_mask(const TextValue& v, int bytes) {
  if (!v.literal && v.mask_bytes == bytes) return v.text;
  return fmt::format("tile::convert_mask<{}>({})", bytes, widened(v, "1"));
}

std::string literal_text(const schedule::Expr& e) {
  const std::string_view type = computed_type(e.dtype);
  if (!is_float(e.dtype)) {
    if (e.dtype == DType::kI64) {
      const auto v = static_cast<int64_t>(e.bits);
      return v == INT64_MIN ? "int64_t(-9223372036854775807ll - 1)" : fmt::format("int64_t({}ll)", v);
    }
    if (e.dtype == DType::kU64) return fmt::format("uint64_t({}ull)", e.bits);
    return fmt::format("{}({})", type, static_cast<int64_t>(e.bits));
  }
  const double v = std::bit_cast<double>(e.bits);
  const char* suffix = e.dtype == DType::kF64 ? "" : "f";
  if (std::isnan(v)) return fmt::format("{}(__builtin_nan(\"\"))", type);
  if (std::isinf(v)) return fmt::format("{}({}__builtin_inf())", type, v < 0 ? "-" : "");
  std::string digits = e.dtype == DType::kF64 ? fmt::format("{}", v) : fmt::format("{}", static_cast<float>(v));
  if (digits.find_first_of(".e") == std::string::npos) digits += ".0";
  return digits + suffix;
}

}  // namespace heddle::codegen
