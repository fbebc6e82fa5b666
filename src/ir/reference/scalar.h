#pragma once

#include <cstdint>
#include <optional>

#include "heddle/tensor.h"

namespace heddle::ir {

// Return the element of a dense tensor at a linear index, which must be in range. real_at() converts integers to
// double. integer_at() converts floats to integers, and reinterprets the bits of a u64 element as int64.
double real_at(const Tensor& tensor, int64_t index);
int64_t integer_at(const Tensor& tensor, int64_t index);
// The largest magnitude of the finite elements of a dense tensor of numbers; 0 if there are none.
double largest_magnitude(const Tensor& tensor);
// Set the element at a linear index. Floats are rounded to the tensor's type; integers wrap around.
void set_real(Tensor& tensor, int64_t index, double value);
void set_integer(Tensor& tensor, int64_t index, int64_t value);

// Returns the common value of all elements if the elements are bitwise equal. Returns nullopt if they differ, and for
// empty tensors and strings.
std::optional<double> splat_of(const Tensor& tensor);
// True if all elements are bitwise equal and there is at least one.
bool is_splat(const Tensor& tensor);
// Returns a tensor in which every element is `value`, rounded to the type.
Tensor splat(DType dtype, Shape shape, double value);

}  // namespace heddle::ir
