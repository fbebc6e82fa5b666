#include "lang/analysis/indices.h"

#include <algorithm>

namespace heddle::lang {
namespace {

// Whether a cast keeps the values of indices.
bool keeps_values(Element from, Element to) {
  return is_int(from) && is_int(to) && bits_of(from) <= bits_of(to);
}

bool uses_any_in(const Region& region, const Uses& uses, const Polynomial& p) {
  std::set<const Region*> inner{&region};
  for_each_op(region, [&](const Op& op) {
    for (const Region& r : op.regions) inner.insert(&r);
  });
  for (const auto& [product, factor] : p.terms()) {
    if (std::any_of(product.begin(), product.end(), [&](ValueId v) { return inner.count(uses.region(v)) != 0; })) {
      return true;
    }
  }
  return false;
}

// Powers of a sum grow without bound; no address is one.
constexpr size_t kMostTerms = 64, kMostFactors = 8;
bool is_short(const Polynomial& p) {
  return p.terms().size() <= kMostTerms &&
         std::all_of(p.terms().begin(), p.terms().end(), [](const auto& t) { return t.first.size() <= kMostFactors; });
}
bool is_short(const AffineTile& tile) {
  return is_short(tile.base) && std::all_of(tile.strides.begin(), tile.strides.end(),
                                            [](const Polynomial& stride) { return is_short(stride); });
}

}  // namespace

bool IndexAnalysis::is_shape_op(OpCode code) {
  return code == OpCode::kExpandDims || code == OpCode::kBroadcast || code == OpCode::kPermute ||
         code == OpCode::kSlice;
}

IndexAnalysis::IndexAnalysis(const Kernel& kernel) : kernel_(kernel), uses_(kernel) {
  for_each_op(kernel.body, [&](const Op& op) {
    if (op.code != OpCode::kFor) return;
    for (size_t k = 1; k < op.regions[0].arguments.size(); ++k) {
      carried_.emplace(op.regions[0].arguments[k], std::pair(&op, k - 1));
    }
  });
}

// first + (index - begin) * amount / step.
std::optional<Polynomial> IndexAnalysis::carried(ValueId argument) const {
  const auto found = carried_.find(argument);
  if (found == carried_.end() || !open_.insert(argument).second) return std::nullopt;
  const auto [loop, k] = found->second;
  const Region& body = loop->regions[0];
  auto known = std::exchange(known_, {});  // what the others are made of depends on what stands for itself
  const Polynomial amount = polynomial(body.ops.back().operands[k]) - Polynomial::of(argument);
  known_ = std::move(known);
  open_.erase(argument);
  const std::optional<int64_t> step = polynomial(loop->operands[2]).constant();
  if (!step || *step <= 0 || uses_any_in(body, uses_, amount)) return std::nullopt;
  const Polynomial moved = (Polynomial::of(body.arguments[0]) - polynomial(loop->operands[0])) * amount;
  Polynomial sum = polynomial(loop->operands[3 + k]);
  for (const auto& [product, factor] : moved.terms()) {
    if (factor % *step != 0) return std::nullopt;
    Polynomial term(factor / *step);
    for (const ValueId v : product) term = term * Polynomial::of(v);
    sum = sum + term;
  }
  return sum;
}

// Makes what is not known of a value and of those of its kind that it is made of, operands first: chains of additions
// may be deeper than the stack.
template <typename Made, typename Make>
void IndexAnalysis::operands_first(ValueId value, const Made& known, const Make& make) const {
  const auto passes_on = [](const Op& op) {
    return is_shape_op(op.code) || op.code == OpCode::kAdd || op.code == OpCode::kSub || op.code == OpCode::kMul ||
           op.code == OpCode::kCast || op.code == OpCode::kHint || op.code == OpCode::kRem;
  };
  std::vector<ValueId> open{value};
  while (!open.empty()) {
    const ValueId v = open.back();
    const size_t before = open.size();
    const Op* const op = uses_.definer(v);
    if (op != nullptr && !known.contains(v) && passes_on(*op)) {
      for (const ValueId operand : op->operands) {
        const bool same_kind = kernel_.type(operand).is_scalar() == kernel_.type(v).is_scalar();
        if (same_kind && !known.contains(operand)) open.push_back(operand);
      }
    }
    if (open.size() > before) continue;
    open.pop_back();
    if (!known.contains(v)) make(v);
  }
}

Polynomial IndexAnalysis::polynomial(ValueId scalar) const {
  const auto found = known_.scalars.find(scalar);
  if (found != known_.scalars.end()) return found->second;
  operands_first(scalar, known_.scalars, [&](ValueId v) {
    Polynomial sum = make_polynomial(v);
    if (!is_short(sum)) sum = Polynomial::of(v);
    known_.scalars.emplace(v, std::move(sum));
  });
  return known_.scalars.at(scalar);
}

Polynomial IndexAnalysis::make_polynomial(ValueId scalar) const {
  const Op* op = uses_.definer(scalar);
  if (op == nullptr && is_int(kernel_.type(scalar).element) && !kernel_.type(scalar).pointer) {
    if (const std::optional<Polynomial> sum = carried(scalar)) return *sum;
  }
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

std::optional<AffineTile> IndexAnalysis::affine(ValueId tile) const {
  const auto found = known_.tiles.find(tile);
  if (found != known_.tiles.end()) return found->second;
  operands_first(tile, known_.tiles, [&](ValueId v) {
    std::optional<AffineTile> made = make_affine(v);
    if (made && !is_short(*made)) made.reset();
    known_.tiles.emplace(v, std::move(made));
  });
  return known_.tiles.at(tile);
}

std::optional<AffineTile> IndexAnalysis::make_affine(ValueId tile) const {
  const Type& type = kernel_.type(tile);
  if (type.is_scalar()) return AffineTile(polynomial(tile));
  const Op* op = uses_.definer(tile);
  if (op == nullptr || type.pointer || !is_int(type.element)) return std::nullopt;
  const auto rank = static_cast<size_t>(type.rank());
  switch (op->code) {
    case OpCode::kConstant:
      return AffineTile(Polynomial(op->attributes.integer("value")), rank);
    case OpCode::kSplat:
      return AffineTile(polynomial(op->operands[0]), rank);
    case OpCode::kIota: {
      AffineTile indices(Polynomial(op->attributes.integer("start")), 1);
      indices.strides[0] = Polynomial(1);
      return indices;
    }
    default:
      break;
  }
  if (is_shape_op(op->code)) {
    auto from = affine(op->operands[0]);
    return from ? reshaped(*op, *std::move(from), kernel_.type(op->operands[0]).shape) : std::nullopt;
  }
  return elementwise(*op);
}

std::optional<AffineTile> IndexAnalysis::reshaped(const Op& op, AffineTile tile, const std::vector<int64_t>& from) {
  const auto axis = static_cast<std::ptrdiff_t>(op.attributes.integer("axis"));
  switch (op.code) {
    case OpCode::kExpandDims:
      tile.strides.insert(tile.strides.begin() + axis, Polynomial());
      tile.wraps.insert(tile.wraps.begin() + axis, std::nullopt);
      return tile;
    case OpCode::kBroadcast:
      for (size_t d = 0; d < from.size(); ++d) {
        if (from[d] != 1) continue;
        if (tile.wraps[d]) return std::nullopt;
        tile.strides[d] = Polynomial();
      }
      return tile;
    case OpCode::kPermute: {
      AffineTile turned(tile.base);
      for (const int64_t d : op.attributes.list("order")) {
        turned.strides.push_back(tile.strides[static_cast<size_t>(d)]);
        turned.wraps.push_back(tile.wraps[static_cast<size_t>(d)]);
      }
      return turned;
    }
    default:
      if (tile.wraps[static_cast<size_t>(axis)]) return std::nullopt;
      tile.base = tile.base + tile.strides[static_cast<size_t>(axis)] * Polynomial(op.attributes.integer("start"));
      return tile;
  }
}

// (start + i) % size of one dimension, which is a wrap.
std::optional<AffineTile> IndexAnalysis::remainder(const Op& op) const {
  std::optional<AffineTile> index = affine(op.operands[0]);
  const std::optional<AffineTile> size = affine(op.operands[1]);
  if (!index || !size || !is_signed_int(kernel_.type(op.results[0]).element)) return std::nullopt;
  std::optional<size_t> along;
  for (size_t d = 0; d < index->strides.size(); ++d) {
    if (!size->strides[d].is_zero() || index->wraps[d]) return std::nullopt;
    if (index->strides[d].is_zero()) continue;
    if (along || index->strides[d] != Polynomial(1)) return std::nullopt;
    along = d;
  }
  if (!along) return std::nullopt;
  index->wraps[*along] = Wrap{index->base, size->base};
  return index;
}

bool IndexAnalysis::add(AffineTile& to, const AffineTile& b, const Polynomial& sign) {
  for (size_t d = 0; d < to.strides.size(); ++d) {
    const bool in_a = !to.strides[d].is_zero(), in_b = !b.strides[d].is_zero();
    if (in_a && in_b && to.wraps[d] != b.wraps[d]) return false;
    if (in_b) to.wraps[d] = b.wraps[d];
    to.strides[d] = to.strides[d] + b.strides[d] * sign;
  }
  to.base = to.base + b.base * sign;
  return true;
}

std::optional<AffineTile> IndexAnalysis::elementwise(const Op& op) const {
  const Element element = kernel_.type(op.results[0]).element;
  if (op.code == OpCode::kRem) return remainder(op);
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
  return add(*a, *b, Polynomial(op.code == OpCode::kSub ? -1 : 1)) ? a : std::nullopt;
}

}  // namespace heddle::lang
