#include "passes/rewrite/digits.h"

#include <algorithm>

#include "base/divide.h"
#include "passes/rewrite/view.h"

namespace heddle::passes {

// Digits that one stride expresses become one.
void DigitView::append(Digits& to, Digit digit) {
  if (digit.extent == 1) return;
  if (!to.empty() && to.back().stride == digit.stride * digit.extent) {
    to.back() = {to.back().extent * digit.extent, digit.stride};
  } else {
    to.push_back(digit);
  }
}

int64_t DigitView::inner(const Digits& digits) {
  int64_t count = 1;
  for (size_t i = 1; i < digits.size(); ++i) count *= digits[i].extent;
  return count;
}

DigitView DigitView::dense(const Shape& shape) {
  const StridedView view = StridedView::dense(shape);
  DigitView result;
  result.shape_ = shape;
  for (size_t d = 0; d < shape.size(); ++d) {
    append(result.dims_.emplace_back(), {shape[d], view.strides[d]});
  }
  return result;
}

std::optional<DigitView> DigitView::apply(const Node& node) const {
  switch (node.op) {
    case Op::kBroadcast: {
      DigitView result;
      result.shape_ = node.attrs.ints("shape");
      result.offset_ = offset_;
      for (const int64_t extent : result.shape_) append(result.dims_.emplace_back(), {extent, 0});
      const ir::Ints& dims = node.attrs.ints("dims");
      for (size_t d = 0; d < dims.size(); ++d) {
        const auto to = static_cast<size_t>(dims[d]);
        if (shape_[d] == result.shape_[to]) result.dims_[to] = dims_[d];
      }
      return result;
    }
    case Op::kTranspose: {
      DigitView result;
      result.offset_ = offset_;
      for (const int64_t d : node.attrs.ints("perm")) {
        result.shape_.push_back(shape_[static_cast<size_t>(d)]);
        result.dims_.push_back(dims_[static_cast<size_t>(d)]);
      }
      return result;
    }
    case Op::kReshape:
      return reshaped(node.attrs.ints("shape"));
    case Op::kSlice:
      return sliced(node);
    default:
      return std::nullopt;
  }
}

// Only whole dimensions fall into digits anew. A dimension whose last block a slice has cut stays as it is.
std::optional<DigitView> DigitView::reshaped(const Shape& to) const {
  Digits all;
  for (size_t d = 0; d < dims_.size(); ++d) {
    int64_t count = 1;
    for (const Digit& digit : dims_[d]) count *= digit.extent;
    if (count != shape_[d]) return std::nullopt;
    for (const Digit& digit : dims_[d]) append(all, digit);
  }
  DigitView result;
  result.shape_ = to;
  result.offset_ = offset_;
  result.dims_.resize(to.size());
  for (size_t d = to.size(); d-- > 0;) {
    Digits reversed;
    for (int64_t need = to[d]; need > 1;) {
      if (all.empty()) return std::nullopt;
      Digit& last = all.back();
      const int64_t part = std::min(need, last.extent);
      if (need % part != 0 || last.extent % part != 0) return std::nullopt;
      reversed.push_back({part, last.stride});
      last = {last.extent / part, last.stride * part};
      if (last.extent == 1) all.pop_back();
      need /= part;
    }
    for (size_t i = reversed.size(); i-- > 0;) append(result.dims_[d], reversed[i]);
  }
  return result;
}

std::optional<DigitView> DigitView::sliced(const Node& node) const {
  const ir::Ints &starts = node.attrs.ints("starts"), &limits = node.attrs.ints("limits"),
                 &strides = node.attrs.ints("strides");
  DigitView result = *this;
  for (size_t d = 0; d < shape_.size(); ++d) {
    if (starts[d] == 0 && limits[d] == shape_[d] && strides[d] == 1) continue;
    Digits& digits = result.dims_[d];
    const int64_t block = inner(digits);
    if (strides[d] != 1 || starts[d] % block != 0 || limits[d] <= starts[d]) return std::nullopt;
    result.shape_[d] = limits[d] - starts[d];
    if (digits.empty()) continue;
    result.offset_ += starts[d] / block * digits[0].stride;
    digits[0].extent = ceil_div(result.shape_[d], block);
  }
  return result;
}

int64_t DigitView::at(const ir::Ints& index) const {
  int64_t position = offset_;
  for (size_t d = 0; d < dims_.size(); ++d) position += step(d, index[d]);
  return position;
}

int64_t DigitView::step(size_t dim, int64_t index) const {
  int64_t distance = 0;
  for (size_t i = dims_[dim].size(); i-- > 0;) {
    const Digit& digit = dims_[dim][i];
    distance += (i == 0 ? index : index % digit.extent) * digit.stride;
    index /= digit.extent;
  }
  return distance;
}

int64_t DigitView::run(size_t dim) const {
  const Digits& digits = dims_[dim];
  if (digits.empty() || (digits.size() == 1 && digits[0].stride == 0)) return shape_[dim];
  return digits.back().stride == 0 ? digits.back().extent : 1;
}

}  // namespace heddle::passes
