#pragma once

#include <string>
#include <string_view>

#include "codegen/scalar/spelling.h"
#include "schedule/expr/expr.h"
#include "schedule/kernel_desc.h"

namespace heddle::codegen {

std::string_view computed_type(DType dtype);                 // "float"; for bool "uint8_t"
std::string pointer_type(const schedule::Operand& operand);  // "const tile::half*"; no const for an output

// A value in generated C++ text. Its C++ type is tile::vec<T, W> if `wide`, or tile::vec<T, 1> if all lanes share the
// value, where T = computed_type(dtype). Bool values have type tile::mask<mask_bytes, W or 1>.
struct TextValue {
  std::string text;
  DType dtype = DType::kF32;
  bool wide = false;
  int mask_bytes = 0;    // > 0: the value is a mask
  bool literal = false;  // text is a plain C++ literal of type T, not a vec
};

// The value of a load, given the text of the load in storage format. Bools become a mask.
TextValue loaded_value(const std::string& load, DType dtype, bool wide = false);
// The value as a vec or mask of `width` lanes. `width` is "1" or the text of the kernel's full vector width.
std::string widened(const TextValue& value, const std::string& width);
// A bool value as a mask with `bytes` bytes per lane. A literal becomes a mask with a single lane.
std::string as_mask(const TextValue& value, int bytes);

// The text of a constant as a C++ literal of its computed type.
std::string literal_text(const schedule::Expr& constant);

}  // namespace heddle::codegen
