// Numbers of 8 bits as floats.
#pragma once

#include "tile/op/arith.h"

namespace heddle::tile::cuda {

// Converts numbers of 8 bits and adds Offset. A permutation puts a byte into the lowest bits of the float 2^23, and a
// subtraction leaves the number: both execute at a higher rate than conversions from integers.
template <int Offset, typename T, int W>
__device__ inline vec<float, W> float_of_bytes(vec<T, W> a) {
  constexpr uint32_t kBits = 0x4b000000;                     // of 2^23
  constexpr uint32_t kSign = is_signed<T> ? 0x80808080 : 0;  // makes signed bytes unsigned ones, plus 128
  constexpr float kRest = 8388608.f + (is_signed<T> ? 128 : 0) - Offset;
  constexpr int kBytes = W % 4 == 0 ? 4 : 1;
  vec<float, W> r;
#pragma unroll
  for (int i = 0; i < W; i += kBytes) {
    uint32_t word = 0;
#pragma unroll
    for (int j = 0; j < kBytes; ++j) word |= static_cast<uint32_t>(static_cast<uint8_t>(a[i + j])) << (8 * j);
    word ^= kSign;
#pragma unroll
    for (int j = 0; j < kBytes; ++j) {
      r.set(i + j, __builtin_bit_cast(float, __byte_perm(word, kBits, 0x7540 | static_cast<uint32_t>(j))) - kRest);
    }
  }
  return r;
}

}  // namespace heddle::tile::cuda
