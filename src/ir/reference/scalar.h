#pragma once

#include <cstdint>
#include <optional>

#include "heddle/tensor.h"

namespace heddle::ir {

// One element of a dense tensor, by linear index, which must be inside. Floats are read as double; integers and bool as
// int64 (u64 by its bits), either is converted when asked for as the other.
double real_at(const Tensor& tensor, int64_t index);
int64_t integer_at(const Tensor& tensor, int64_t index);
// Rounds floats to the tensor's type, wraps integers.
void set_real(Tensor& tensor, int64_t index, double value);
void set_integer(Tensor& tensor, int64_t index, int64_t value);

// The value that all elements share (bitwise), or nothing: empty tensors, strings and tensors with different elements.
std::optional<double> splat_of(const Tensor& tensor);
// Bitwise equality of all elements; true for one element, false for none.
bool is_splat(const Tensor& tensor);
// A tensor of one value, rounded to the type.
Tensor splat(DType dtype, Shape shape, double value);

}  // namespace heddle::ir
