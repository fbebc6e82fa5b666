#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace heddle::ir {

// The matrix multiplication for the reference dot and conv. It is blocked and packed, so that a convolutional network
// is evaluated in float64 in seconds. Callbacks pack the operands, which saves the callers a copy.
constexpr int64_t kPanelRows = 6;  // 6 x 8 sums fit the vector registers of AVX2 and AVX-512
constexpr int64_t kPanelCols = 8;

// Fills `panel` (depth x width, row-major) with terms [k, k + depth) of rows or columns [first, first + width) of an
// operand, zero beyond its edge; width is kPanelRows for a left operand and kPanelCols for a right one.
template <typename T>
using PackPanel = std::function<void(int64_t first, int64_t k, int64_t depth, T* panel)>;

template <typename T>
struct Product {
  int64_t depth = 0;  // the contracted extent
  PackPanel<T> lhs, rhs;
  T* out = nullptr;  // out[rows[i] + cols[j]] receives the sum over k
  const std::vector<int64_t>* rows = nullptr;
  const std::vector<int64_t>* cols = nullptr;
};

// `out` must hold zeros. T is double, or uint64_t for integers (arithmetic modulo 2^64).
void multiply(const Product<double>& product);
void multiply(const Product<uint64_t>& product);

}  // namespace heddle::ir
