#pragma once

#include <cstdint>
#include <optional>

#include "heddle/tensor.h"

namespace heddle::ir {

// One element of a dense tensor by linear index, which must be in range. real_at() converts integers to double;
// integer_at() returns int64 (u64 by its bits) and converts floats.
double real_at(const Tensor& tensor, int64_t index);
int64_t integer_at(const Tensor& tensor, int64_t index);
// Rounds floats to the tensor's type, wraps integers.
void set_real(Tensor& tensor, int64_t index, double value);
void set_integer(Tensor& tensor, int64_t index, int64_t value);

// The value that all elements share (bitwise), or nothing: empty tensors, strings and tensors with different elements.
std::optional<double> splat_of(const Tensor& tensor);
// True if all elements are bitwise equal and there is at least one.
bool is_splat(const Tensor& tensor);
// A tensor of one value, rounded to the type.
Tensor splat(DType dtype, Shape shape, double value);

}  // namespace heddle::ir
