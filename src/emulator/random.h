#pragma once

#include <cstdint>

namespace heddle::emulator {

// An xorshift64* generator. It generates a number in a few nanoseconds, so that a random choice at every switch between
// threads is cheap enough.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15u + 0xD1B54A32D192ED03u) {
    if (state_ == 0) state_ = 1;
  }
  uint32_t next() {
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return static_cast<uint32_t>(state_ * 0x2545F4914F6CDD1Du >> 32);
  }
  // Returns a number in [0, n).
  uint32_t below(uint32_t n) { return static_cast<uint32_t>(uint64_t{next()} * n >> 32); }
  bool one_in(uint32_t n) { return below(n) == 0; }

 private:
  uint64_t state_;
};

}  // namespace heddle::emulator
