// Random data with guarded surroundings for the tests of the tile library.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <random>
#include <type_traits>
#include <vector>

#include "tile/arch/cpu/vec.h"

namespace heddle::tile::testing {

inline double to_double(half h) {
  return to_float(h);
}
inline double to_double(bfloat b) {
  return to_float(b);
}
template <typename T>
requires std::is_arithmetic_v<T>
double to_double(T x) {
  return static_cast<double>(x);
}

template <typename T>
T from_double(double x) {
  if constexpr (std::is_same_v<T, half>) {
    return to_half(static_cast<float>(x));
  } else if constexpr (std::is_same_v<T, bfloat>) {
    return to_bfloat(static_cast<float>(x));
  } else {
    return static_cast<T>(x);
  }
}

// An array between two runs of sentinels, which `intact` checks. Elements start out poisoned.
template <typename T>
class Guarded {
 public:
  explicit Guarded(int64_t size) : size_(size), data_(static_cast<size_t>(size + 2 * kGuard), poison()) {}

  T* data() { return data_.data() + kGuard; }
  const T* data() const { return data_.data() + kGuard; }
  int64_t size() const { return size_; }
  T& operator[](int64_t i) { return data()[i]; }
  const T& operator[](int64_t i) const { return data()[i]; }

  bool intact() const {
    const T expected = poison();
    for (int64_t i = 0; i < kGuard; ++i) {
      if (std::memcmp(&data_[static_cast<size_t>(i)], &expected, sizeof(T)) != 0) return false;
      if (std::memcmp(&data_[static_cast<size_t>(kGuard + size_ + i)], &expected, sizeof(T)) != 0) return false;
    }
    return true;
  }

 private:
  static constexpr int64_t kGuard = 80;
  static T poison() {
    T value;
    std::memset(&value, 0x5b, sizeof(T));
    return value;
  }
  int64_t size_;
  std::vector<T> data_;
};

// Floats uniform in [-1, 1); integers over a small range, within the type.
template <typename T>
void fill(Guarded<T>& array, std::mt19937& random) {
  for (int64_t i = 0; i < array.size(); ++i) {
    if constexpr (std::is_integral_v<T>) {
      array[i] = static_cast<T>(static_cast<int>(random() % 200) - (std::is_signed_v<T> ? 100 : 0));
    } else {
      array[i] = from_double<T>(static_cast<double>(random()) / 2147483648.0 - 1.0);
    }
  }
}

// Scratch memory aligned as the runtime gives it, exactly as large as asked for.
struct Scratch {
  explicit Scratch(int64_t bytes)
      : memory(std::aligned_alloc(64, static_cast<size_t>((bytes + 63) / 64 * 64 + 64)), &std::free) {}
  operator void*() const { return memory.get(); }
  std::unique_ptr<void, void (*)(void*)> memory;
};

// An epilogue that stores the accumulators as they are and counts how often each element was written.
template <typename T>
struct StoreAll {
  T* out;
  int* writes;
  int64_t batch_stride, row_stride;

  template <int W, typename N>
  void operator()(vec<T, W> acc, int64_t batch, int64_t row, int64_t col, N n) const {
    const int64_t at = batch * batch_stride + row * row_stride + col;
    store_n(out + at, acc, n);
    for (int64_t i = 0; i < n; ++i) ++writes[at + i];
  }
};

// The same with columns in place of rows, stored as vectors of rows.
template <typename T>
struct StoreColumns {
  static constexpr bool kAlongRows = true;
  T* out;
  int64_t batch_stride, column_stride;

  template <int W, typename N>
  void operator()(vec<T, W> acc, int64_t batch, int64_t row, int64_t col, N n) const {
    store_n(out + batch * batch_stride + col * column_stride + row, acc, n);
  }
};

}  // namespace heddle::tile::testing
