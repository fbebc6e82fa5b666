#pragma once

#include <optional>
#include <vector>

#include "lang/analysis/polynomial.h"
#include "lang/analysis/uses.h"
#include "lang/ir/kernel.h"

// Where tiles of pointers point, for whoever copies blocks of a matrix instead of elements: on a CPU and on a GPU.
// Arithmetic on signed indices is taken not to overflow: what overflowed would point nowhere.
namespace heddle::lang {

// Elements of a tile of integers: base + the sum of strides[d] * i[d].
struct AffineTile {
  Polynomial base;
  std::vector<Polynomial> strides;
};

// A tile of pointers as a window: element i lies at
//   base + offset + the sum of dims[d].stride * (dims[d].start + i[d])
// in elements, and is there where each dims[d].start + i[d] is below its size and all conditions hold.
struct Window {
  struct Dim {
    int64_t extent = 1;  // of the tile
    Polynomial start, stride;
    std::optional<Polynomial> size;  // none: not bounded by the mask
  };
  ValueId base = 0;  // a scalar pointer
  Polynomial offset;
  std::vector<Dim> dims;
  std::vector<ValueId> conditions;  // scalars
};

class WindowAnalysis {
 public:
  explicit WindowAnalysis(const Kernel& kernel) : kernel_(kernel), uses_(kernel) {}

  // A scalar integer as a sum of products of others.
  Polynomial polynomial(ValueId scalar) const;
  // Nothing where the elements are of another form.
  std::optional<AffineTile> affine(ValueId tile) const;
  // The window of a tile of pointers, bounded by a mask if there is one (< 0: none).
  std::optional<Window> window(ValueId pointers, ValueId mask = -1) const;

 private:
  struct Pointers {
    ValueId base;
    AffineTile offset;
  };
  std::optional<AffineTile> elementwise(const Op& op) const;
  std::optional<AffineTile> reshaped(const Op& op, AffineTile tile, const std::vector<int64_t>& from) const;
  std::optional<Pointers> pointers(ValueId value) const;
  bool add_mask(ValueId mask, const std::vector<int64_t>& dims, Window& window) const;
  bool add_bound(const Op& compare, const std::vector<int64_t>& dims, Window& window) const;
  void move_starts(Window& window) const;

  const Kernel& kernel_;
  const Uses uses_;
};

}  // namespace heddle::lang
