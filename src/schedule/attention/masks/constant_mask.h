#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/reference/array.h"
#include "schedule/attention/masks/interval.h"
#include "schedule/product/contraction.h"

namespace heddle::schedule {

// The granularity of ranges: this many rows, this many keys.
inline constexpr int64_t kCellRows = 64, kCellKeys = 16;

// A constant that scores load, as a matrix of rows and keys of all batches. Keeps the least and largest elements of
// cells of kCellRows x kCellKeys, from which it bounds boxes. For parts of a cell it scans the elements.
class ConstantMask {
 public:
  // Positions of the elements: the sum of a term by batch, a term by row and a term by key. Repeated terms of batches
  // are listed once.
  struct Places {
    std::vector<int64_t> batches, rows, keys;
  };
  ConstantMask(const Tensor& tensor, Places places);

  Bounds at(const Box& box) const;

 private:
  size_t cell(int64_t row, int64_t key) const {
    return static_cast<size_t>(row / kCellRows * columns_ + key / kCellKeys);
  }
  Bounds scan(const Box& box) const;

  const ir::Array values_;
  const Places at_;
  int64_t columns_ = 0;
  std::vector<Bounds> cells_;
};

// The positions of the elements that an index of scores refers to; nullopt if a term depends on more than one of batch,
// row and key.
std::optional<ConstantMask::Places> places_of(const Epilogue& scores, const Index& index);

}  // namespace heddle::schedule
