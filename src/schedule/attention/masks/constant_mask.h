#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/reference/array.h"
#include "schedule/attention/masks/interval.h"
#include "schedule/product/contraction.h"

namespace heddle::schedule {

// Ranges of keys are found for so many rows, by so many keys.
inline constexpr int64_t kCellRows = 64, kCellKeys = 16;

// The content of a constant that scores load, as a matrix of rows and keys of all batches: its least and largest
// elements by cells of kCellRows x kCellKeys, of which boxes are made; of parts of a cell it looks at each.
class ConstantMask {
 public:
  // Where the elements of each batch, row and key are: the sum of the three; those of batches without repetition.
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

// Where the elements of an index of scores lie; nullopt where one of its terms varies with more than a batch, a row or
// a key alone.
std::optional<ConstantMask::Places> places_of(const Epilogue& scores, const Index& index);

}  // namespace heddle::schedule
