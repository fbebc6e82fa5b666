#pragma once

#include <string>

#include "heddle/tensor.h"

namespace heddle::cli {

// NumPy's .npy files (format 1 to 3, little-endian, C order). Arrays of text ("<U8", "|S8") are read as text. Types
// that NumPy lacks (bf16, the float8 family) are written as unsigned integers of the same size, with the same bits.

// Throws kFile, and kInvalidInput for what is no such file or has a type that Heddle lacks.
Tensor read_npy(const std::string& path);
// `tensor` of a type that files hold as integers: the bits of `stored` seen as `wanted`; else `stored` itself.
Tensor as_dtype(const Tensor& stored, DType wanted);
// Throws kFile, kUnsupportedType (text).
void write_npy(const std::string& path, const Tensor& tensor);

}  // namespace heddle::cli
