#include "lang/cpu/types.h"

#include <fmt/format.h>

#include "codegen/scalar/text_value.h"
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
  return std::string(codegen::computed_type(dtype_of(type.element)));
}

std::string buffer_type(const Type& type) {
  return is_mask(type) ? "int32_t" : lane_type(type);
}

int64_t buffer_size(const Type& type) {
  if (type.pointer) return 8;
  return is_mask(type) || is_rounded(type) ? 4 : size_of(type.element);
}

std::string memory_type(Element element) {
  if (element == Element::kF8E4M3B15) return "f8e4m3b15";
  return std::string(codegen::storage_type(dtype_of(element)));
}

std::string literal(const Attribute& value, const Type& type) {
  if (is_mask(type)) return value.integer != 0 ? "mask<4, 1>{{-1}}" : "mask<4, 1>{{0}}";
  const DType lanes = type.pointer ? DType::kI64 : schedule::compute_dtype(dtype_of(type.element));
  return fmt::format("vec<{}, 1>{{{}}}", lane_type(type),
                     is_float(lanes) ? codegen::literal(lanes, round_float(type.element, value.number))
                                     : codegen::literal(lanes, value.integer));
}

}  // namespace heddle::lang::cpu
