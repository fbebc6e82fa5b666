// 16-byte pieces that begin at any byte of global memory. They are assembled from the aligned 16-byte words around
// them.
#pragma once

#include <stdint.h>

namespace heddle::tile::cuda {

struct alignas(16) Chunk {
  uint32_t x[4];
};

// Returns the 16 bytes that begin `shift` bytes (0 to 15) after the beginning of `low`. `high` follows `low` in memory.
__device__ inline Chunk shifted(const Chunk& low, const Chunk& high, uint32_t shift) {
  uint32_t w[8];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    w[i] = low.x[i];
    w[i + 4] = high.x[i];
  }
  // Registers cannot be indexed by a variable, so words are moved conditionally: by 8 bytes, by 4 bytes, then by single
  // bytes.
#pragma unroll
  for (int i = 0; i < 6; ++i) w[i] = (shift & 8) != 0 ? w[i + 2] : w[i];
#pragma unroll
  for (int i = 0; i < 5; ++i) w[i] = (shift & 4) != 0 ? w[i + 1] : w[i];
  Chunk result;
#pragma unroll
  for (int i = 0; i < 4; ++i) result.x[i] = __funnelshift_r(w[i], w[i + 1], (shift & 3) * 8);
  return result;
}

// Loads the 16 bytes at `at`, a multiple of 16. Bytes from address `end` on are not read and are 0.
__device__ inline Chunk load_until(uint64_t at, uint64_t end) {
  Chunk chunk{};
  if (at + 16 <= end) {
    chunk = *reinterpret_cast<const Chunk*>(at);
  } else {
#pragma unroll 1
    for (uint32_t i = 0; at + i < end; ++i) {
      const uint32_t byte = static_cast<uint32_t>(*reinterpret_cast<const uint8_t*>(at + i)) << (i % 4 * 8);
#pragma unroll
      for (uint32_t word = 0; word < 4; ++word) chunk.x[word] |= i / 4 == word ? byte : 0;
    }
  }
  return chunk;
}

// Keeps the first `count` bytes of a chunk and clears the other bytes.
__device__ inline Chunk before(const Chunk& chunk, int count) {
  Chunk result;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int bytes = count - 4 * i;
    result.x[i] = bytes >= 4 ? chunk.x[i] : bytes <= 0 ? 0 : chunk.x[i] & ((1u << (8 * bytes)) - 1);
  }
  return result;
}

// An unaligned 16-byte piece, from its loads until its use. value() assembles it.
class ShiftedChunk {
 public:
  // Loads the words around the piece at address `at`. Bytes from address `end` on are not read.
  __device__ void fetch(uint64_t at, uint64_t end) {
    shift_ = static_cast<uint32_t>(at) & 15;
    low_ = load_until(at - shift_, end);
    if (shift_ != 0) high_ = load_until(at - shift_ + 16, end);
  }
  __device__ Chunk value() const { return shifted(low_, high_, shift_); }

 private:
  Chunk low_, high_;
  uint32_t shift_;
};

}  // namespace heddle::tile::cuda
