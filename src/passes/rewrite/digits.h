#pragma once

#include <optional>
#include <vector>

#include "passes/names.h"

namespace heddle::passes {

// A dense tensor accessed through layout ops, where an index along one dimension may fall into digits with a stride
// each: element i of a row of blocks is at i / 32 * stride if 32 neighbours share a scale. This form also covers
// reshapes that StridedView (passes/rewrite/view.h) cannot express.
class DigitView {
 public:
  static DigitView dense(const Shape& shape);
  // The view after applying a transpose, reshape, broadcast or slice node. nullopt if digits cannot express it.
  std::optional<DigitView> apply(const Node& node) const;

  const Shape& shape() const { return shape_; }
  // The linear position of the element with these indices.
  int64_t at(const ir::Ints& index) const;
  // The distance in elements from index 0 to `index` along `dim`; that of an element is the sum over all dimensions.
  int64_t step(size_t dim, int64_t index) const;
  // The largest n such that blocks of n neighbours along `dim` are one element of the tensor.
  int64_t run(size_t dim) const;

 private:
  // The outermost digit comes first. Its extent is not a bound of the index, since a slice may cut the last block.
  struct Digit {
    int64_t extent, stride;
  };
  using Digits = std::vector<Digit>;

  std::optional<DigitView> reshaped(const Shape& to) const;
  std::optional<DigitView> sliced(const Node& node) const;
  static int64_t inner(const Digits& digits);
  static void append(Digits& to, Digit digit);

  Shape shape_;
  std::vector<Digits> dims_;
  int64_t offset_ = 0;
};

}  // namespace heddle::passes
