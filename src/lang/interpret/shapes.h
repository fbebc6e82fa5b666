#pragma once

#include "lang/interpret/number.h"
#include "lang/ir/kernel.h"

namespace heddle::lang {

// These functions return, for each element of the result, the index of the operand's element that is copied to it.
// Tiles are row-major.
std::vector<size_t> expand_map(const std::vector<int64_t>& from, const std::vector<int64_t>& to);  // broadcast
std::vector<size_t> permute_map(const std::vector<int64_t>& from, const std::vector<int64_t>& order);

// The number of elements before, along and after an axis of a row-major tile. The tile has outer * extent * inner
// elements.
struct AxisExtents {
  size_t outer = 1, extent = 1, inner = 1;
  AxisExtents(const std::vector<int64_t>& shape, int64_t axis);
  size_t at(size_t o, size_t i, size_t k) const { return (o * extent + i) * inner + k; }
};

}  // namespace heddle::lang
