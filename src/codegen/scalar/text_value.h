#pragma once

#include <string>
#include <string_view>

#include "codegen/scalar/spelling.h"
#include "schedule/expr/expr.h"
#include "schedule/kernel_desc.h"

namespace heddle::codegen {

std::string_view computed_type(DType dtype);                 // "float"; bool: "uint8_t"
std::string pointer_type(const schedule::Operand& operand);  // "const tile::half*"; of an output without const

// A value in the text. Its C++ type is tile::vec<T, W> where it is wide and tile::vec<T, 1> where all lanes share it
// (T = computed_type(dtype)); bool values are tile::mask<mask_bytes, W or 1>.
struct TextValue {
  std::string text;
  DType dtype = DType::kF32;
  bool wide = false;
  int mask_bytes = 0;    // > 0: a mask
  bool literal = false;  // text is a plain C++ literal of type T, not a vec
};

// A loaded element in its storage form, as a value; bools become a mask.
TextValue loaded_value(const std::string& load, DType dtype, bool wide = false);
// The value as a vec or mask of `width` lanes, which is "1" or the width that wide values have.
std::string widened(const TextValue& value, const std::string& width);
// A bool value as a mask of `bytes` bytes per lane; a literal becomes a mask of a single lane.
std::string as_mask(const TextValue& value, int bytes);

// A constant as a C++ literal of its computed type.
std::string literal_text(const schedule::Expr& constant);

}  // namespace heddle::codegen
