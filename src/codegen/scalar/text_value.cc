#include "codegen/scalar/text_value.h"

#include <fmt/format.h>

#include <bit>

namespace heddle::codegen {

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
  const DType type = schedule::compute_dtype(e.dtype);
  return is_float(type) ? literal(type, std::bit_cast<double>(e.bits)) : literal(type, static_cast<int64_t>(e.bits));
}

}  // namespace heddle::codegen
