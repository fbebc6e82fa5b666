#include "ir/ops/strided.h"

namespace heddle::ir {

Ints row_major_strides(const Shape& shape) {
  Ints strides(shape.size());
  int64_t step = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    strides[d] = step;
    step *= shape[d];
  }
  return strides;
}

int64_t extent_product(const Shape& shape, size_t begin, size_t end) {
  int64_t product = 1;
  for (size_t d = begin; d < end; ++d) product *= shape[d];
  return product;
}

void collapse(Shape& extents, Ints& a_strides, Ints& b_strides) {
  size_t kept = 0;
  for (size_t d = 0; d < extents.size(); ++d) {
    if (extents[d] == 1) continue;
    const bool joins = kept > 0 && a_strides[kept - 1] == a_strides[d] * extents[d] &&
                       b_strides[kept - 1] == b_strides[d] * extents[d];
    if (joins) {
      extents[kept - 1] *= extents[d];
    } else {
      extents[kept++] = extents[d];
    }
    a_strides[kept - 1] = a_strides[d];
    b_strides[kept - 1] = b_strides[d];
  }
  if (kept == 0) {
    extents.assign(1, 1);
    a_strides.assign(1, 1);
    b_strides.assign(1, 1);
    return;
  }
  extents.resize(kept);
  a_strides.resize(kept);
  b_strides.resize(kept);
}

}  // namespace heddle::ir
