#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "codegen/names.h"
#include "codegen/product/cuda/functor.h"
#include "schedule/product/cuda/family.h"

namespace heddle::codegen {

// The text of a product's operand: the name of the operand's C++ type. The base class has the definition of this type
// if the type is a generated struct, and the bytes of one object of the type.
struct OperandText : CudaFunctor {
  std::string type;  // "OperandA", "tile::cuda::Image<tile::half, 2, 8, true, false, false>"
};
struct OperandTexts {
  OperandText a, b;
};
OperandTexts operand_texts(const schedule::ProductTask& task, schedule::LinesOf as_lines);

// A matrix in memory, as a struct called `name`. `lines` is the number of rows of A or columns of B. With `as_lines`,
// the struct also gives the position of each line in memory.
OperandText matrix_text(const schedule::OperandView& operand, int64_t lines, bool as_lines, const char* name);
// The images of a convolution with `groups` groups.
OperandText image_text(const schedule::OperandView& operand, int64_t groups);

// storage_type() of a product's operand, except that fp8 types become the types that tensor cores read.
std::string_view cuda_storage(DType type);

}  // namespace heddle::codegen
