#pragma once

#include <optional>
#include <vector>

#include "lang/analysis/indices.h"
#include "lang/ir/kernel.h"

// Where tiles of pointers point, for whoever copies blocks of a matrix instead of elements: on a CPU and on a GPU.
namespace heddle::lang {

// A tile of pointers as a window: element i lies at
//   base + offset + the sum of dims[d].stride * (dims[d].start + i[d])
// in elements, and is there where each dims[d].start + i[d] is below its size and all conditions hold. Where a
// dimension wraps, (dims[d].start + i[d]) % size stands for the index, and no mask bounds it.
struct Window {
  struct Dim {
    int64_t extent = 1;  // of the tile
    Polynomial start, stride;
    std::optional<Polynomial> size;  // none: not bounded by the mask
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

  // The window of a tile of pointers, bounded by a mask if there is one (< 0: none).
  std::optional<Window> window(ValueId pointers, ValueId mask = -1) const;
  // That of an access to a view; the sizes are those of dimensions that it checks.
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
