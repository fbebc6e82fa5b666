#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <vector>

namespace heddle::fuzz {

// Draws that are the same on every machine for one seed (std distributions are not).
class Rng {
 public:
  explicit Rng(uint64_t seed) : engine_(seed * 0x9E3779B97F4A7C15 + 1) {}

  int64_t range(int64_t low, int64_t high) {  // both included
    return low + static_cast<int64_t>(engine_() % static_cast<uint64_t>(high - low + 1));
  }
  double real(double low, double high) { return low + (high - low) * static_cast<double>(engine_() >> 11) * 0x1p-53; }
  bool chance(double probability) { return real(0, 1) < probability; }
  template <typename T>
  const T& pick(const std::vector<T>& items) {
    return items[static_cast<size_t>(range(0, static_cast<int64_t>(items.size()) - 1))];
  }
  template <typename T>
  void shuffle(std::vector<T>& items) {
    for (size_t i = items.size(); i > 1; --i)
      std::swap(items[i - 1], items[static_cast<size_t>(range(0, static_cast<int64_t>(i) - 1))]);
  }
  uint64_t bits() { return engine_(); }

 private:
  std::mt19937_64 engine_;
};

// Numbers at which sizes, counts and offsets go wrong.
inline uint64_t interesting(Rng& rng) {
  static const std::vector<uint64_t> values = {0,          1,           2,           3,          7,
                                               16,         127,         128,         255,        65535,
                                               0x7fffffff, 0x80000000U, 0xffffffffU, 1ULL << 32, 1ULL << 40,
                                               1ULL << 62, INT64_MAX,   1ULL << 63,  UINT64_MAX, UINT64_MAX - 1};
  return rng.pick(values);
}

}  // namespace heddle::fuzz
