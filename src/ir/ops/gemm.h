#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace heddle::ir {

// The matrix multiplication of the reference evaluator, for dot and conv. It uses blocking and packing, so that a
// convolutional network can be evaluated in float64 within seconds. Callbacks of the caller pack the operands, so no
// other copy of them is needed.
constexpr int64_t kPanelRows = 6;  // 6 x 8 accumulators fit into the vector registers of AVX2 and AVX-512.
constexpr int64_t kPanelCols = 8;

// Fills `panel` (depth x width, row-major) with a part of an operand: the indices [k, k + depth) along the contracted
// dimension, and the rows or columns [first, first + width). Elements beyond the edge of the operand become 0. The
// width is kPanelRows for a left operand (rows) and kPanelCols for a right operand (columns).
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

// Computes a product. `out` must be filled with zeros before the call. Floats are computed in double; integers are
// computed in uint64_t, modulo 2^64.
void multiply(const Product<double>& product);
void multiply(const Product<uint64_t>& product);

}  // namespace heddle::ir
