#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "codegen/names.h"
#include "codegen/product/cuda/functor.h"
#include "schedule/product/cuda/family.h"

namespace heddle::codegen {

// An operand of a product as text: the type that the kernel names, the definition of a generated struct, and the bytes
// of one object.
struct OperandText : CudaFunctor {
  std::string type;  // "OperandA", "tile::cuda::Image<tile::half, 2, 8, true, false, false>"
};
struct OperandTexts {
  OperandText a, b;
};
OperandTexts operand_texts(const schedule::ProductTask& task, schedule::LinesOf as_lines);

// A matrix of `lines` rows (columns of B) in memory, as a struct called `name`. With `as_lines`, the struct also gives
// the position of its lines.
OperandText matrix_text(const schedule::OperandView& operand, int64_t lines, bool as_lines, const char* name);
// Images of a convolution with `groups` groups.
OperandText image_text(const schedule::OperandView& operand, int64_t groups);

// storage_type() of an operand of a product: fp8 types are those that tensor cores read.
std::string_view cuda_storage(DType type);

}  // namespace heddle::codegen
