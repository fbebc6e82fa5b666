#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "heddle/tensor.h"

namespace heddle::ir {

// The integers of `bits` bits in one word of the op `dequantize`.
int64_t integers_per_word(int64_t bits);

// A matrix of one-byte integers whose rows are read one at a time, so that it need not be in memory as a whole. `read`
// returns a row; it may write the row to `buffer`, which holds one. Calls are concurrent.
struct ByteRows {
  int64_t count, length;
  bool is_signed;
  std::function<const uint8_t*(int64_t row, uint8_t* buffer)> read;
};
ByteRows rows_of(const Tensor& matrix);

// The least and the greatest of 0 and the integers.
std::pair<int64_t, int64_t> range_of(const ByteRows& rows);

// Packs the integers into words, as `dequantize` reads them. `offset` is added to each integer, which must then be at
// least 0 and below 2^bits.
Tensor pack_words(const ByteRows& rows, int64_t bits, int64_t offset);
// The integers of `count` words, a byte each.
void unpack_words(const uint32_t* words, int64_t count, int64_t bits, uint8_t* to);

}  // namespace heddle::ir
