#pragma once

#include "array.h"
#include "heddle/tensor.h"

namespace heddle::python {

// Elements narrower than a byte. Heddle holds each as the byte of its value: -8 of i4 is 0xf8. ml_dtypes writes it to
// the low bits of a byte and reads only those.

bool is_narrow(DType dtype);

// A dense host array with its elements in Heddle's form: a copy if any differ.
Array widened(Array array);

// A copy as ml_dtypes writes it.
Tensor in_low_bits(const Tensor& tensor);
// The same in place, for an array that was written. Does nothing unless Array::low_bits is set.
void narrow(const Array& array);

}  // namespace heddle::python
