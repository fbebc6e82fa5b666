#pragma once

#include "heddle/tensor.h"

namespace heddle::ir {

// The integers of `bits` bits in one word of the op `dequantize`.
int64_t integers_per_word(int64_t bits);

// Packs rows of one-byte integers into words, as `dequantize` reads them. `offset` is added to each integer, which must
// then be at least 0 and below 2^bits.
Tensor pack_words(const Tensor& rows, int64_t bits, int64_t offset);

}  // namespace heddle::ir
