#pragma once

#include <optional>
#include <vector>

#include "lang/analysis/indices.h"
#include "lang/ir/kernel.h"

// Finds the block of a matrix that a tile of pointers addresses, so that CPU and GPU code can copy blocks instead of
// elements.
namespace heddle::lang {

// The memory that a tile of pointers addresses, as a window. The address of tile element i, in units of elements, is
//   base + offset + the sum of dims[d].stride * (dims[d].start + i[d])
// The mask includes element i if dims[d].start + i[d] < dims[d].size for every d and all conditions hold. If dimension
// d wraps, its index is (dims[d].start + i[d]) % dims[d].size instead, and the mask does not bound this dimension.
struct Window {
  struct Dim {
    int64_t extent = 1;  // extent of the tile
    Polynomial start, stride;
    std::optional<Polynomial> size;  // nullopt: the mask does not bound this dimension
    bool wraps = false;
  };
  ValueId base = 0;  // a scalar pointer
  Polynomial offset;
  std::vector<Dim> dims;
  std::vector<ValueId> conditions;  // scalars that must be true
};

class WindowAnalysis : public IndexAnalysis {
 public:
  using IndexAnalysis::IndexAnalysis;

  // Returns the window of a tile of pointers, bounded by `mask` (< 0: no mask).
  std::optional<Window> window(ValueId pointers, ValueId mask = -1) const;
  // Returns the window of an access through a view. Sizes are set only for bounds-checked dimensions.
  std::optional<Window> window_of_view(const Op& access) const;

 private:
  struct Pointers {
    ValueId base;
    AffineTile offset;
  };
  std::optional<Pointers> pointers(ValueId value) const;
  bool add_conjuncts(const Op& join, const std::vector<int64_t>& dims, Window& window) const;
  bool add_mask(ValueId mask, const std::vector<int64_t>& dims, Window& window) const;
  bool add_bound(const Op& compare, const std::vector<int64_t>& dims, Window& window) const;
  void move_starts(Window& window) const;
};

}  // namespace heddle::lang
