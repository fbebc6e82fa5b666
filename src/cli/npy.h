#pragma once

#include <string>

#include "heddle/tensor.h"

namespace heddle::cli {

// NumPy's .npy files (format 1 to 3, little-endian, C order). Arrays of text ("<U8", "|S8") are read as text. Types
// that NumPy lacks (bf16, the float8 family) are written as unsigned integers of the same size, with the same bits.

// Throws kFile, and kInvalidInput if the file is not .npy or has a type that Heddle lacks.
Tensor read_npy(const std::string& path);
// Reinterprets the bits of `stored` as `wanted` if files hold `wanted` as integers of its type. Otherwise returns
// `stored`.
Tensor as_dtype(const Tensor& stored, DType wanted);
// Throws kFile, kUnsupportedType (text).
void write_npy(const std::string& path, const Tensor& tensor);

}  // namespace heddle::cli
