#pragma once

#include "array.h"
#include "heddle/tensor.h"

namespace heddle::python {

// Elements narrower than a byte. Heddle holds each as the byte of its value: -8 of i4 is 0xf8. ml_dtypes writes it to
// the low bits of a byte and reads nothing else of that.

bool is_narrow(DType dtype);

// An array of the host, whose memory is dense, with elements as Heddle holds them: a copy where some differ.
Array widened(Array array);

// A copy as ml_dtypes writes it.
Tensor in_low_bits(const Tensor& tensor);
// The same in place, of an array that was written. Nothing to do where Array::low_bits does not ask for it.
void narrow(const Array& array);

}  // namespace heddle::python
