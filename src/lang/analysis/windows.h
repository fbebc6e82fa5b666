#pragma once

#include <optional>
#include <vector>

#include "lang/analysis/indices.h"
#include "lang/ir/kernel.h"

// Finds the block of a matrix that a tile of pointers addresses, so that CPU and GPU code can copy blocks instead of
// elements.
namespace heddle::lang {

// A tile of pointers as a window. In units of elements, element i lies at
//   base + offset + the sum of dims[d].stride * (dims[d].start + i[d])
// It is present if every dims[d].start + i[d] is below its size and all conditions hold. If a dimension wraps, its
// index is (dims[d].start + i[d]) % size, and no mask bounds it.
struct Window {
  struct Dim {
    int64_t extent = 1;  // extent of the tile
    Polynomial start, stride;
    std::optional<Polynomial> size;  // none: the mask does not bound this dimension
    bool wraps = false;
  };
  ValueId base = 0;  // a scalar pointer
  Polynomial offset;
  std::vector<Dim> dims;
  std::vector<ValueId> conditions;  // scalars
};

class WindowAnalysis : public IndexAnalysis {
 public:
  using IndexAnalysis::IndexAnalysis;

  // The window of a tile of pointers, bounded by `mask` (< 0: no mask).
  std::optional<Window> window(ValueId pointers, ValueId mask = -1) const;
  // The window of a view access. Sizes are set only for bounds-checked dimensions.
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
