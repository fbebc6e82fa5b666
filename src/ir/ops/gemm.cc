#include "ir/ops/gemm.h"

#include <algorithm>
#include <cstring>

#include "base/clones.h"
#include "ir/ops/parallel.h"

namespace heddle::ir {
namespace {

constexpr int64_t kDepthBlock = 256;  // a left panel of 256 x 6 stays in L1
constexpr int64_t kColsBlock = 256;   // a right block of 256 x 256 stays in L2
constexpr int64_t kRowsBlock = 16 * kPanelRows;

template <typename T>
struct LanesOf;
template <>
struct LanesOf<double> {
  using Type = double __attribute__((vector_size(64)));
};
template <>
struct LanesOf<uint64_t> {
  using Type = uint64_t __attribute__((vector_size(64)));
};

template <typename T>
inline __attribute__((always_inline)) void panel_product(int64_t depth, const T* a, const T* b, T* tile) {
  using V = typename LanesOf<T>::Type;
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

// The part of the result in rows [i0, i1) and columns [j0, j1).
template <typename T>
void multiply_part(const Product<T>& p, int64_t i0, int64_t i1, int64_t j0, int64_t j1) {
  const int64_t deepest = std::min(p.depth, kDepthBlock);
  const int64_t col_panels = (std::min(j1 - j0, kColsBlock) + kPanelCols - 1) / kPanelCols;
  std::vector<T> right(static_cast<size_t>(col_panels * kPanelCols * deepest));
  std::vector<T> left(static_cast<size_t>(kPanelRows * deepest));
  T tile[kPanelRows * kPanelCols];
  for (int64_t block = j0; block < j1; block += kColsBlock) {
    const int64_t block_end = std::min(j1, block + kColsBlock);
    for (int64_t k = 0; k < p.depth; k += kDepthBlock) {
      const int64_t depth = std::min(kDepthBlock, p.depth - k);
      for (int64_t j = block; j < block_end; j += kPanelCols) p.rhs(j, k, depth, right.data() + (j - block) * depth);
      for (int64_t i = i0; i < i1; i += kPanelRows) {
        p.lhs(i, k, depth, left.data());
        const int64_t rows = std::min(kPanelRows, i1 - i);
        for (int64_t j = block; j < block_end; j += kPanelCols) {
          tile_product(depth, left.data(), right.data() + (j - block) * depth, tile);
          const int64_t cols = std::min(kPanelCols, block_end - j);
          for (int64_t r = 0; r < rows; ++r) {
            for (int64_t c = 0; c < cols; ++c) p.out[(*p.rows)[i + r] + (*p.cols)[j + c]] += tile[r * kPanelCols + c];
          }
        }
      }
    }
  }
}

template <typename T>
void multiply_blocked(const Product<T>& p) {
  const auto m = static_cast<int64_t>(p.rows->size()), n = static_cast<int64_t>(p.cols->size());
  if (n > kColsBlock) {
    parallel_for((n + kColsBlock - 1) / kColsBlock, m * p.depth * kColsBlock, [&](int64_t begin, int64_t end) {
      multiply_part(p, 0, m, begin * kColsBlock, std::min(n, end * kColsBlock));
    });
  } else if (n > 0) {
    parallel_for((m + kRowsBlock - 1) / kRowsBlock, n * p.depth * kRowsBlock, [&](int64_t begin, int64_t end) {
      multiply_part(p, begin * kRowsBlock, std::min(m, end * kRowsBlock), 0, n);
    });
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
