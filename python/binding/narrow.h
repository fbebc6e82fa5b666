#pragma once

#include "array.h"
#include "heddle/tensor.h"

namespace heddle::python {

// Elements narrower than a byte. Heddle stores each element as a whole byte of the same value, sign-extended if the
// type is signed: -8 of i4 is 0xf8. ml_dtypes reads and writes only the low bits of that byte.

bool is_narrow(DType dtype);

// Converts a dense host array to Heddle's form. Returns a copy if any element differs, else the array itself.
Array widened(Array array);

// Returns a copy of the tensor in the form that ml_dtypes writes.
Tensor in_low_bits(const Tensor& tensor);
// Converts an array in place, from the form in which Heddle wrote it to the form that ml_dtypes uses. Does nothing
// unless Array::low_bits is set.
void narrow(const Array& array);

}  // namespace heddle::python
