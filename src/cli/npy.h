#pragma once

#include <string>

#include "heddle/tensor.h"

namespace heddle::cli {

// NumPy's .npy files (format 1 to 3, little-endian, C order). Arrays of text ("<U8", "|S8") are read as text tensors.
// Types that NumPy lacks (bf16, the float8 family) are written as unsigned integers of the same size, with the same
// bits.

// Reads a tensor. Throws kFile if the file cannot be read, and kInvalidInput if it is not .npy or has a type that
// Heddle lacks.
Tensor read_npy(const std::string& path);
// Changes the type of a tensor that was read from a file: returns the bits of `stored` with the type `wanted`, if .npy
// files store `wanted` as integers and `stored` has that integer type. Otherwise returns `stored`.
Tensor as_dtype(const Tensor& stored, DType wanted);
// Writes a tensor to an .npy file. Throws kFile if it cannot be written, and kUnsupportedType for text.
void write_npy(const std::string& path, const Tensor& tensor);

}  // namespace heddle::cli
