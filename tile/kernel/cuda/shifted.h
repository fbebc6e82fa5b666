// Pieces of 16 bytes that begin at any byte of global memory, made of the aligned words around them.
#pragma once

#include <stdint.h>

namespace heddle::tile::cuda {

struct alignas(16) Chunk {
  uint32_t x[4];
};

// The 16 bytes from `at` on, as words: 4 `words` if at is `shift` = at mod 16 bytes behind the first of them.
__device__ inline Chunk shifted(const Chunk& low, const Chunk& high, uint32_t shift) {
  uint32_t w[8];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    w[i] = low.x[i];
    w[i + 4] = high.x[i];
  }
  // Registers have no index that varies: words move by halves, then bytes.
#pragma unroll
  for (int i = 0; i < 6; ++i) w[i] = (shift & 8) != 0 ? w[i + 2] : w[i];
#pragma unroll
  for (int i = 0; i < 5; ++i) w[i] = (shift & 4) != 0 ? w[i + 1] : w[i];
  Chunk result;
#pragma unroll
  for (int i = 0; i < 4; ++i) result.x[i] = __funnelshift_r(w[i], w[i + 1], (shift & 3) * 8);
  return result;
}

// The aligned word at `at`; what lies at `end` or behind it is not read.
__device__ inline Chunk load_before(const uint8_t* base, int64_t at, int64_t end) {
  Chunk chunk{};
  if (at + 16 <= end) {
    chunk = *reinterpret_cast<const Chunk*>(base + at);
  } else {
#pragma unroll 1
    for (int i = 0; at + i < end; ++i) chunk.x[i / 4] |= static_cast<uint32_t>(base[at + i]) << (i % 4 * 8);
  }
  return chunk;
}

// One such piece between its reads and its use.
class ShiftedChunk {
 public:
  // From byte `at` >= 0 of `base`, a multiple of 16; bytes at `end` or behind it are not read.
  __device__ void fetch(const uint8_t* base, int64_t at, int64_t end) {
    shift_ = static_cast<uint32_t>(at) & 15;
    const int64_t word = at - shift_;
    low_ = load_before(base, word, end);
    if (shift_ != 0) high_ = load_before(base, word + 16, end);
  }
  __device__ Chunk value() const { return shifted(low_, high_, shift_); }

 private:
  Chunk low_, high_;
  uint32_t shift_;
};

}  // namespace heddle::tile::cuda
