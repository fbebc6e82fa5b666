#include "lang/analysis/windows.h"

#include <algorithm>
#include <set>

namespace heddle::lang {
namespace {

size_t terms(const Polynomial& p) {
  return p.terms().size();
}

}  // namespace

std::optional<WindowAnalysis::Pointers> WindowAnalysis::pointers(ValueId value) const {
  std::vector<const Op*> moves;  // from the value down to its base
  const Op* op = uses_.definer(value);
  while (op != nullptr && (op->code == OpCode::kAddPtr || op->code == OpCode::kHint || op->code == OpCode::kSplat ||
                           is_shape_op(op->code))) {
    moves.push_back(op);
    value = op->operands[0];
    op = uses_.definer(value);
  }
  if (!kernel_.type(value).is_scalar()) return std::nullopt;
  Pointers found{value, AffineTile(Polynomial(), 0)};
  for (size_t i = moves.size(); i-- > 0;) {
    const Op& move = *moves[i];
    if (move.code == OpCode::kAddPtr) {
      const auto by = affine(move.operands[1]);
      if (!by || !add(found.offset, *by, Polynomial(1))) return std::nullopt;
    } else if (move.code == OpCode::kSplat) {
      found.offset = AffineTile(found.offset.base, kernel_.type(move.results[0]).shape.size());
    } else if (move.code != OpCode::kHint) {
      auto moved = reshaped(move, std::move(found.offset), kernel_.type(move.operands[0]).shape);
      if (!moved) return std::nullopt;
      found.offset = *std::move(moved);
    }
  }
  return found;
}

// A conjunct i < bound of one dimension. `dims`: for each dimension of the mask, which one of the window it is; -1: its
// extent is 1.
bool WindowAnalysis::add_bound(const Op& compare, const std::vector<int64_t>& dims, Window& window) const {
  const auto order = order_of(compare);
  if (!order || !is_signed_int(kernel_.type(compare.operands[0]).element)) return false;
  const auto index = affine(order->smaller), limit = affine(order->larger);
  if (!index || !limit) return false;
  const auto wraps = [](const AffineTile& t) {
    return std::any_of(t.wraps.begin(), t.wraps.end(), [](const auto& w) { return w.has_value(); });
  };
  if (wraps(*index) || wraps(*limit)) return false;
  int64_t bounded = -1;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] < 0) continue;
    if (!limit->strides[d].is_zero()) return false;
    if (index->strides[d].is_zero()) continue;
    if (index->strides[d] != Polynomial(1) || bounded >= 0) return false;
    bounded = dims[d];
  }
  if (bounded < 0) return false;
  Window::Dim& dim = window.dims[static_cast<size_t>(bounded)];
  if (dim.wraps) return false;
  const Polynomial size = limit->base + Polynomial(order->strict ? 0 : 1);
  if (dim.size) return dim.start == index->base && *dim.size == size;
  dim.start = index->base;
  dim.size = size;
  return true;
}

// Each of the masks that an `and` joins, through others below it, once.
bool WindowAnalysis::add_conjuncts(const Op& join, const std::vector<int64_t>& dims, Window& window) const {
  std::set<ValueId> seen;
  std::vector<ValueId> open{join.operands[1], join.operands[0]};
  while (!open.empty()) {
    const ValueId mask = open.back();
    open.pop_back();
    if (!seen.insert(mask).second) continue;
    const Op* const op = uses_.definer(mask);
    if (op != nullptr && op->code == OpCode::kAnd && kernel_.type(mask).is_tile()) {
      open.insert(open.end(), op->operands.rbegin(), op->operands.rend());
    } else if (!add_mask(mask, dims, window)) {
      return false;
    }
  }
  return true;
}

bool WindowAnalysis::add_mask(ValueId mask, const std::vector<int64_t>& dims, Window& window) const {
  const Op* op = uses_.definer(mask);
  if (kernel_.type(mask).is_scalar()) {
    window.conditions.push_back(mask);
    return true;
  }
  if (op == nullptr) return false;
  std::vector<int64_t> inner = dims;
  switch (op->code) {
    case OpCode::kAnd:
      return add_conjuncts(*op, dims, window);
    case OpCode::kConstant:
      return op->attributes.integer("value") != 0;
    case OpCode::kSplat:
      window.conditions.push_back(op->operands[0]);
      return true;
    case OpCode::kExpandDims:
      inner.erase(inner.begin() + static_cast<std::ptrdiff_t>(op->attributes.integer("axis")));
      return add_mask(op->operands[0], inner, window);
    case OpCode::kBroadcast: {
      const std::vector<int64_t>& from = kernel_.type(op->operands[0]).shape;
      for (size_t d = 0; d < inner.size(); ++d) {
        if (from[d] == 1 && kernel_.type(mask).shape[d] != 1) inner[d] = -1;
      }
      return add_mask(op->operands[0], inner, window);
    }
    case OpCode::kPermute: {
      const std::vector<int64_t> order = op->attributes.list("order");
      for (size_t d = 0; d < order.size(); ++d) inner[static_cast<size_t>(order[d])] = dims[d];
      return add_mask(op->operands[0], inner, window);
    }
    default:
      return add_bound(*op, dims, window);
  }
}

// The offset becomes parts of the starts: a tile at K - k that moved by k * stride is one of the size K at k.
void WindowAnalysis::move_starts(Window& window) const {
  for (Window::Dim& dim : window.dims) {
    if (!dim.size) continue;
    window.offset = window.offset - dim.stride * dim.start;
    if (dim.wraps) continue;
    Polynomial less;
    for (const auto& [product, factor] : dim.size->terms()) {
      if (factor >= 0) continue;
      Polynomial term(-factor);
      for (const ValueId value : product) term = term * Polynomial::of(value);
      less = less + term;
    }
    if (less.is_zero() || terms(window.offset - dim.stride * less) >= terms(window.offset)) continue;
    window.offset = window.offset - dim.stride * less;
    dim.start = dim.start + less;
    dim.size = *dim.size + less;
  }
}

std::optional<Window> WindowAnalysis::window(ValueId value, ValueId mask) const {
  const auto found = pointers(value);
  if (!found) return std::nullopt;
  const std::vector<int64_t>& shape = kernel_.type(value).shape;
  Window window{found->base, found->offset.base, {}, {}};
  std::vector<int64_t> dims;
  for (size_t d = 0; d < shape.size(); ++d) {
    Window::Dim dim{shape[d], {}, found->offset.strides[d], {}, false};
    if (const std::optional<Wrap>& wrap = found->offset.wraps[d]) {
      dim.start = wrap->start;
      dim.size = wrap->size;
      dim.wraps = true;
    }
    window.dims.push_back(std::move(dim));
    dims.push_back(static_cast<int64_t>(d));
  }
  if (mask >= 0 && !add_mask(mask, dims, window)) return std::nullopt;
  move_starts(window);
  return window;
}

std::optional<Window> WindowAnalysis::window_of_view(const Op& access) const {
  const Op* const made = uses_.definer(access.operands[0]);
  if (made == nullptr || made->code != OpCode::kMakeView) return std::nullopt;
  const auto from = pointers(made->operands[0]);
  if (!from) return std::nullopt;
  const std::vector<int64_t>& shape = kernel_.type(access.operands[0]).shape;
  const std::vector<int64_t> checked = access.attributes.list("check");
  Window window{from->base, from->offset.base, {}, {}};
  for (size_t d = 0; d < shape.size(); ++d) {
    Window::Dim dim{
        shape[d], polynomial(access.operands[1 + d]), polynomial(made->operands[1 + shape.size() + d]), {}, false};
    if (std::find(checked.begin(), checked.end(), static_cast<int64_t>(d)) != checked.end()) {
      dim.size = polynomial(made->operands[1 + d]);
    }
    window.dims.push_back(std::move(dim));
  }
  return window;
}

}  // namespace heddle::lang
