#include "lang/interpret/shapes.h"

namespace heddle::lang {
namespace {

// Element numbers of a walk over `shape` with these strides.
std::vector<size_t> walk(const std::vector<int64_t>& shape, const std::vector<size_t>& strides) {
  std::vector<size_t> result{0};
  for (size_t d = 0; d < shape.size(); ++d) {
    std::vector<size_t> next;
    next.reserve(result.size() * static_cast<size_t>(shape[d]));
    for (const size_t base : result) {
      for (size_t i = 0; i < static_cast<size_t>(shape[d]); ++i) next.push_back(base + i * strides[d]);
    }
    result = std::move(next);
  }
  return result;
}

std::vector<size_t> dense_strides(const std::vector<int64_t>& shape) {
  std::vector<size_t> strides(shape.size(), 1);
  for (size_t d = shape.size(); d-- > 1;) strides[d - 1] = strides[d] * static_cast<size_t>(shape[d]);
  return strides;
}

}  // namespace

std::vector<size_t> expand_map(const std::vector<int64_t>& from, const std::vector<int64_t>& to) {
  std::vector<size_t> strides = dense_strides(from);
  for (size_t d = 0; d < from.size(); ++d) {
    if (from[d] == 1) strides[d] = 0;
  }
  return walk(to, strides);
}

std::vector<size_t> permute_map(const std::vector<int64_t>& from, const std::vector<int64_t>& order) {
  const std::vector<size_t> strides = dense_strides(from);
  std::vector<int64_t> shape;
  std::vector<size_t> permuted;
  for (const int64_t d : order) {
    shape.push_back(from[static_cast<size_t>(d)]);
    permuted.push_back(strides[static_cast<size_t>(d)]);
  }
  return walk(shape, permuted);
}

AxisExtents::AxisExtents(const std::vector<int64_t>& shape, int64_t axis) {
  for (size_t d = 0; d < shape.size(); ++d) {
    const auto size = static_cast<size_t>(shape[d]);
    if (d < static_cast<size_t>(axis)) outer *= size;
    if (d == static_cast<size_t>(axis)) extent = size;
    if (d > static_cast<size_t>(axis)) inner *= size;
  }
}

}  // namespace heddle::lang
