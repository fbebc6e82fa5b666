#include "ir/ops/gemm.h"

#include <algorithm>
#include <cstring>

// One object file serves every x86: the loader picks the clone. Sanitizers cannot instrument the resolver, which runs
// before their start-up.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__)
#define HEDDLE_CLONES __attribute__((target_clones("arch=skylake-avx512", "arch=haswell", "default")))
#else
#define HEDDLE_CLONES
#endif

namespace heddle::ir {
namespace {

constexpr int64_t kDepthBlock = 256;  // a left panel of 256 x 6 stays in L1
constexpr int64_t kColsBlock = 256;   // a right block of 256 x 256 stays in L2

template <typename T>
struct Lanes;
template <>
struct Lanes<double> {
  using Type = double __attribute__((vector_size(64)));
};
template <>
struct Lanes<uint64_t> {
  using Type = uint64_t __attribute__((vector_size(64)));
};

template <typename T>
inline __attribute__((always_inline)) void panel_product(int64_t depth, const T* a, const T* b, T* tile) {
  using V = typename Lanes<T>::Type;
  V sums[kPanelRows] = {};
  for (int64_t k = 0; k < depth; ++k) {
    V column;
    std::memcpy(&column, b + k * kPanelCols, sizeof(V));
    for (int64_t r = 0; r < kPanelRows; ++r) sums[r] += a[k * kPanelRows + r] * column;
  }
  std::memcpy(tile, sums, sizeof(sums));
}

HEDDLE_CLONES void tile_product(int64_t depth, const double* a, const double* b, double* tile) {
  panel_product(depth, a, b, tile);
}

HEDDLE_CLONES void tile_product(int64_t depth, const uint64_t* a, const uint64_t* b, uint64_t* tile) {
  panel_product(depth, a, b, tile);
}

template <typename T>
void multiply_blocked(const Product<T>& p) {
  const auto m = static_cast<int64_t>(p.rows->size());
  const auto n = static_cast<int64_t>(p.cols->size());
  if (m == 0 || n == 0) return;
  const int64_t col_panels = (std::min(n, kColsBlock) + kPanelCols - 1) / kPanelCols;
  std::vector<T> right(static_cast<size_t>(col_panels * kPanelCols * std::min(p.depth, kDepthBlock)));
  std::vector<T> left(static_cast<size_t>(kPanelRows * std::min(p.depth, kDepthBlock)));
  T tile[kPanelRows * kPanelCols];
  for (int64_t j0 = 0; j0 < n; j0 += kColsBlock) {
    const int64_t j1 = std::min(n, j0 + kColsBlock);
    for (int64_t k0 = 0; k0 < p.depth; k0 += kDepthBlock) {
      const int64_t depth = std::min(kDepthBlock, p.depth - k0);
      for (int64_t j = j0; j < j1; j += kPanelCols) p.rhs(j, k0, depth, right.data() + (j - j0) * depth);
      for (int64_t i = 0; i < m; i += kPanelRows) {
        p.lhs(i, k0, depth, left.data());
        const int64_t rows = std::min(kPanelRows, m - i);
        for (int64_t j = j0; j < j1; j += kPanelCols) {
          tile_product(depth, left.data(), right.data() + (j - j0) * depth, tile);
          const int64_t cols = std::min(kPanelCols, j1 - j);
          for (int64_t r = 0; r < rows; ++r) {
            for (int64_t c = 0; c < cols; ++c) p.out[(*p.rows)[i + r] + (*p.cols)[j + c]] += tile[r * kPanelCols + c];
          }
        }
      }
    }
  }
}

}  // namespace

void multiply(const Product<double>& product) {
  multiply_blocked(product);
}

void multiply(const Product<uint64_t>& product) {
  multiply_blocked(product);
}

}  // namespace heddle::ir
