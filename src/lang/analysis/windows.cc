#include "lang/analysis/windows.h"

#include <algorithm>

namespace heddle::lang {
namespace {

bool is_shape_op(OpCode code) {
  return code == OpCode::kExpandDims || code == OpCode::kBroadcast || code == OpCode::kPermute ||
         code == OpCode::kSlice;
}

// Whether a cast keeps the values of indices.
bool keeps_values(Element from, Element to) {
  return is_int(from) && is_int(to) && bits_of(from) <= bits_of(to);
}

size_t terms(const Polynomial& p) {
  return p.terms().size();
}

}  // namespace

Polynomial WindowAnalysis::polynomial(ValueId scalar) const {
  const Op* op = uses_.definer(scalar);
  if (op == nullptr || kernel_.type(scalar).pointer || !is_int(kernel_.type(scalar).element)) {
    return Polynomial::of(scalar);
  }
  switch (op->code) {
    case OpCode::kConstant:
      return Polynomial(op->attributes.integer("value"));
    case OpCode::kHint:
      return polynomial(op->operands[0]);
    case OpCode::kAdd:
      return polynomial(op->operands[0]) + polynomial(op->operands[1]);
    case OpCode::kSub:
      if (!is_signed_int(kernel_.type(scalar).element)) break;
      return polynomial(op->operands[0]) - polynomial(op->operands[1]);
    case OpCode::kMul:
      return polynomial(op->operands[0]) * polynomial(op->operands[1]);
    case OpCode::kCast:
      if (!keeps_values(kernel_.type(op->operands[0]).element, kernel_.type(scalar).element)) break;
      return polynomial(op->operands[0]);
    default:
      break;
  }
  return Polynomial::of(scalar);
}

std::optional<AffineTile> WindowAnalysis::affine(ValueId tile) const {
  const Type& type = kernel_.type(tile);
  if (type.is_scalar()) return AffineTile{polynomial(tile), {}};
  const Op* op = uses_.definer(tile);
  if (op == nullptr || type.pointer || !is_int(type.element)) return std::nullopt;
  const auto rank = static_cast<size_t>(type.rank());
  switch (op->code) {
    case OpCode::kConstant:
      return AffineTile{Polynomial(op->attributes.integer("value")), std::vector<Polynomial>(rank)};
    case OpCode::kSplat:
      return AffineTile{polynomial(op->operands[0]), std::vector<Polynomial>(rank)};
    case OpCode::kIota:
      return AffineTile{Polynomial(op->attributes.integer("start")), {Polynomial(1)}};
    default:
      break;
  }
  if (is_shape_op(op->code)) {
    auto from = affine(op->operands[0]);
    return from ? reshaped(*op, *std::move(from), kernel_.type(op->operands[0]).shape) : std::nullopt;
  }
  return elementwise(*op);
}

std::optional<AffineTile> WindowAnalysis::reshaped(const Op& op, AffineTile tile,
                                                   const std::vector<int64_t>& from) const {
  const auto axis = static_cast<std::ptrdiff_t>(op.attributes.integer("axis"));
  switch (op.code) {
    case OpCode::kExpandDims:
      tile.strides.insert(tile.strides.begin() + axis, Polynomial());
      return tile;
    case OpCode::kBroadcast:
      for (size_t d = 0; d < from.size(); ++d) {
        if (from[d] == 1) tile.strides[d] = Polynomial();
      }
      return tile;
    case OpCode::kPermute: {
      std::vector<Polynomial> strides;
      for (const int64_t d : op.attributes.list("order")) strides.push_back(tile.strides[static_cast<size_t>(d)]);
      tile.strides = std::move(strides);
      return tile;
    }
    default:
      tile.base = tile.base + tile.strides[static_cast<size_t>(axis)] * Polynomial(op.attributes.integer("start"));
      return tile;
  }
}

std::optional<AffineTile> WindowAnalysis::elementwise(const Op& op) const {
  const Element element = kernel_.type(op.results[0]).element;
  const bool binary = op.code == OpCode::kAdd || op.code == OpCode::kSub || op.code == OpCode::kMul;
  const bool unary = op.code == OpCode::kHint ||
                     (op.code == OpCode::kCast && keeps_values(kernel_.type(op.operands[0]).element, element));
  if (!binary && !unary) return std::nullopt;
  auto a = affine(op.operands[0]);
  if (!a || unary) return a;
  auto b = affine(op.operands[1]);
  if (!b || (op.code == OpCode::kSub && !is_signed_int(element))) return std::nullopt;
  if (op.code == OpCode::kMul) {
    const auto is_uniform = [](const AffineTile& t) {
      return std::all_of(t.strides.begin(), t.strides.end(), [](const Polynomial& p) { return p.is_zero(); });
    };
    const bool by_second = is_uniform(*b);
    if (!by_second && !is_uniform(*a)) return std::nullopt;
    AffineTile product = by_second ? *a : *b;
    const Polynomial by = by_second ? b->base : a->base;
    for (Polynomial& stride : product.strides) stride = stride * by;
    product.base = product.base * by;
    return product;
  }
  const Polynomial sign(op.code == OpCode::kSub ? -1 : 1);
  for (size_t d = 0; d < a->strides.size(); ++d) a->strides[d] = a->strides[d] + b->strides[d] * sign;
  a->base = a->base + b->base * sign;
  return a;
}

std::optional<WindowAnalysis::Pointers> WindowAnalysis::pointers(ValueId value) const {
  const Type& type = kernel_.type(value);
  const Op* op = uses_.definer(value);
  const std::vector<Polynomial> none(type.shape.size());
  if (op == nullptr) return type.is_scalar() ? std::optional(Pointers{value, {{}, none}}) : std::nullopt;
  if (op->code == OpCode::kAddPtr) {
    auto from = pointers(op->operands[0]);
    const auto by = affine(op->operands[1]);
    if (!from || !by) return std::nullopt;
    from->offset.base = from->offset.base + by->base;
    for (size_t d = 0; d < none.size(); ++d) {
      from->offset.strides[d] = from->offset.strides[d] + by->strides[d];
    }
    return from;
  }
  if (op->code == OpCode::kHint) return pointers(op->operands[0]);
  if (op->code == OpCode::kSplat) {
    auto from = pointers(op->operands[0]);
    if (from) from->offset.strides = none;
    return from;
  }
  if (is_shape_op(op->code)) {
    auto from = pointers(op->operands[0]);
    if (!from) return std::nullopt;
    from->offset = *reshaped(*op, from->offset, kernel_.type(op->operands[0]).shape);
    return from;
  }
  if (type.is_scalar()) return Pointers{value, {{}, none}};
  return std::nullopt;
}

// A conjunct i < bound of one dimension. `dims`: for each dimension of the mask, which one of the window it is; -1: its
// extent is 1.
bool WindowAnalysis::add_bound(const Op& compare, const std::vector<int64_t>& dims, Window& window) const {
  const std::string_view predicate = compare.attributes.word("predicate");
  const bool swapped = predicate == "gt" || predicate == "ge", inclusive = predicate == "le" || predicate == "ge";
  if (!swapped && predicate != "lt" && predicate != "le") return false;
  if (!is_signed_int(kernel_.type(compare.operands[0]).element)) return false;
  const auto index = affine(compare.operands[swapped ? 1 : 0]), limit = affine(compare.operands[swapped ? 0 : 1]);
  if (!index || !limit) return false;
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
  const Polynomial size = limit->base + Polynomial(inclusive ? 1 : 0);
  if (dim.size) return dim.start == index->base && *dim.size == size;
  dim.start = index->base;
  dim.size = size;
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
      return add_mask(op->operands[0], dims, window) && add_mask(op->operands[1], dims, window);
    case OpCode::kCmp:
      return add_bound(*op, dims, window);
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
      return false;
  }
}

// The offset becomes parts of the starts: a tile at K - k that moved by k * stride is one of the size K at k.
void WindowAnalysis::move_starts(Window& window) const {
  for (Window::Dim& dim : window.dims) {
    if (!dim.size) continue;
    window.offset = window.offset - dim.stride * dim.start;
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
    window.dims.push_back({shape[d], {}, found->offset.strides[d], {}});
    dims.push_back(static_cast<int64_t>(d));
  }
  if (mask >= 0 && !add_mask(mask, dims, window)) return std::nullopt;
  move_starts(window);
  return window;
}

}  // namespace heddle::lang
