#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/reference/array.h"
#include "schedule/attention/masks/interval.h"
#include "schedule/product/contraction.h"

namespace heddle::schedule {

// Masks are analysed in cells of kCellRows rows and kCellKeys keys.
inline constexpr int64_t kCellRows = 64, kCellKeys = 16;

// A constant that scores load, viewed as a matrix of rows and keys for each batch. Stores the minimum and maximum of
// the elements in each cell of kCellRows x kCellKeys. at() combines these to bound the elements of a box; where the box
// covers only part of a cell, it scans the elements.
class ConstantMask {
 public:
  // The position of an element is the sum of three terms: one that depends on the batch, one on the row and one on the
  // key. Equal terms of batches are listed once.
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

// Returns the positions of the elements that an index in the scores refers to. Returns nullopt if a term depends on
// more than one of batch, row and key.
std::optional<ConstantMask::Places> places_of(const Epilogue& scores, const Index& index);

}  // namespace heddle::schedule
