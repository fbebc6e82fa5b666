#include "lang/cuda/boxes.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "lang/analysis/confined.h"

namespace heddle::lang::cuda {
namespace {

constexpr int64_t kAlignment = 16;  // of addresses and strides, in bytes
constexpr size_t kMostBatches = 2;

// factor * product / by, where that is one.
std::optional<Polynomial> quotient(const Polynomial::Product& product, int64_t factor, const Polynomial& by) {
  if (by.terms().size() != 1) return std::nullopt;
  const auto& [divisor, scale] = *by.terms().begin();
  if (factor % scale != 0 || !std::includes(product.begin(), product.end(), divisor.begin(), divisor.end())) {
    return std::nullopt;
  }
  Polynomial::Product rest;
  std::set_difference(product.begin(), product.end(), divisor.begin(), divisor.end(), std::back_inserter(rest));
  Polynomial result(factor / scale);
  for (const ValueId v : rest) result = result * Polynomial::of(v);
  return result;
}

class BoxPlanner {
 public:
  BoxPlanner(const Kernel& kernel, const std::vector<AxisFacts>& facts) : kernel_(kernel), facts_(facts) {}

  bool is_parameter(ValueId v) const {
    return std::any_of(kernel_.parameters.begin(), kernel_.parameters.end(),
                       [&](const Kernel::Parameter& p) { return p.value == v; });
  }
  bool is_of_parameters(const Polynomial& p) const {
    return std::all_of(p.terms().begin(), p.terms().end(), [&](const auto& term) {
      return std::all_of(term.first.begin(), term.first.end(), [&](ValueId v) { return is_parameter(v); });
    });
  }
  // Whether so many elements are a multiple of what TMA wants.
  bool is_aligned(const Polynomial& elements, int64_t element) const {
    return std::all_of(elements.terms().begin(), elements.terms().end(), [&](const auto& term) {
      int64_t divisor = std::gcd(kAlignment, term.second * element);
      for (const ValueId v : term.first) {
        divisor = std::gcd(kAlignment, divisor * std::gcd(kAlignment, facts_[static_cast<size_t>(v)].divisor[0]));
      }
      return divisor == kAlignment;
    });
  }
  static bool may_be_negative(const Polynomial& p) {
    return std::any_of(p.terms().begin(), p.terms().end(), [](const auto& term) { return term.second < 0; });
  }

  // What of the offset is no multiple of a row goes along rows or to a batch, whose stride has the parameters.
  bool place_offset(const Polynomial& offset, BoxLoad& box) const {
    for (const auto& [product, factor] : offset.terms()) {
      const std::optional<Polynomial> rows = quotient(product, factor, box.map.strides[0]);
      const bool unbounded_rows = !box.map.size[1];
      if (unbounded_rows && rows && !has_parameter(*rows)) {
        box.corners[1] = box.corners[1] + *rows;
        continue;
      }
      Polynomial one(factor);
      for (const ValueId v : product) one = one * Polynomial::of(v);
      if (!box.map.size[0] && !has_parameter(one)) {
        box.corners[0] = box.corners[0] + one;
        continue;
      }
      if (!place_batch(product, factor, box)) return false;
    }
    return true;
  }

 private:
  bool has_parameter(const Polynomial& p) const {
    return std::any_of(p.terms().begin(), p.terms().end(), [&](const auto& term) {
      return std::any_of(term.first.begin(), term.first.end(), [&](ValueId v) { return is_parameter(v); });
    });
  }
  bool place_batch(const Polynomial::Product& product, int64_t factor, BoxLoad& box) const {
    if (factor < 0) return false;
    Polynomial stride(factor), index(1);
    for (const ValueId v : product)
      (is_parameter(v) ? stride : index) = (is_parameter(v) ? stride : index) * Polynomial::of(v);
    if (!is_aligned(stride, box.map.element)) return false;
    for (size_t i = 1; i < box.map.strides.size(); ++i) {
      if (box.map.strides[i] != stride) continue;
      box.corners[1 + i] = box.corners[1 + i] + index;
      return true;
    }
    if (box.map.strides.size() > kMostBatches) return false;
    box.map.strides.push_back(stride);
    box.corners.push_back(index);
    return true;
  }

  const Kernel& kernel_;
  const std::vector<AxisFacts>& facts_;
};

}  // namespace

std::optional<BoxLoad> box_of(const Kernel& kernel, const std::vector<AxisFacts>& facts, const WindowAnalysis& windows,
                              const Op& load) {
  const BoxPlanner planner(kernel, facts);
  const bool view = load.code == OpCode::kLoadView;
  const std::optional<Window> window =
      view ? windows.window_of_view(load)
           : windows.window(load.operands[0], load.operands.size() > 1 ? load.operands[1] : -1);
  if (!window || window->dims.size() != 2 || !window->conditions.empty() || !planner.is_parameter(window->base) ||
      facts[static_cast<size_t>(window->base)].divisor[0] % kAlignment != 0) {
    return std::nullopt;
  }
  BoxLoad box;
  box.inner_dim = window->dims[1].stride == Polynomial(1) ? 1 : 0;
  const Window::Dim &inner = window->dims[box.inner_dim], &row = window->dims[1 - box.inner_dim];
  box.map.base = window->base;
  box.map.element = size_of(kernel.type(load.results[0]).element);
  const Polynomial& stride = row.stride;
  if (inner.stride != Polynomial(1) || stride.is_zero() || !planner.is_of_parameters(stride) ||
      !planner.is_aligned(stride, box.map.element)) {
    return std::nullopt;
  }
  box.map.strides = {stride};
  for (const Window::Dim* dim : {&inner, &row}) {
    const size_t d = dim == &inner ? box.inner_dim : 1 - box.inner_dim;
    if (dim->size && !planner.is_of_parameters(*dim->size)) return std::nullopt;
    if (dim->wraps && !is_confined(kernel, windows, load.results[0], d, dim->start, *dim->size)) return std::nullopt;
    if (!(view && dim->size) && BoxPlanner::may_be_negative(dim->start)) return std::nullopt;
    box.map.size[dim == &inner ? 0 : 1] = dim->size;
    box.corners.push_back(dim->start);
  }
  if (!planner.place_offset(window->offset, box)) return std::nullopt;
  for (size_t i = 0; i < box.corners.size(); ++i) {
    const bool checked = view && i < 2 && box.map.size[i];
    if (!checked && BoxPlanner::may_be_negative(box.corners[i])) return std::nullopt;
  }
  return box;
}

}  // namespace heddle::lang::cuda
