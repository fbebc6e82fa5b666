#include "schedule/expr/expr.h"

#include <bit>
#include <cstring>

#include "base/check.h"
#include "schedule/expr/expr_walk.h"

namespace heddle::schedule {

DType compute_dtype(DType dtype) {
  return is_float(dtype) && dtype != DType::kF64 ? DType::kF32 : dtype;
}

uint64_t ExprPool::vars(const Index& index) const {
  uint64_t set = 0;
  for (const auto& term : index.terms) {
    set |= term.first < atom_vars_.size() ? atom_vars_[term.first] : vars(indices.atom(term.first));
  }
  return set;
}

uint64_t ExprPool::vars(const Atom& atom) const {
  if (atom.kind == Atom::Kind::kVar) return uint64_t{1} << atom.id;
  return atom.kind == Atom::Kind::kDynamic ? vars_[atom.id] : vars(atom.arg);
}

ExprId ExprPool::add(Expr expr) {
  HEDDLE_CHECK(indices.var_count() <= 64, "{} loop variables", indices.var_count());
  Key key{expr.kind, expr.dtype, expr.op, expr.id, expr.args, expr.index, expr.lo, expr.hi, expr.bits};
  const auto [at, is_new] = interned_.try_emplace(std::move(key), static_cast<ExprId>(exprs_.size()));
  if (is_new) {
    // What an atom is made of was interned before it.
    for (auto id = static_cast<AtomId>(atom_vars_.size()); id < indices.atom_count(); ++id) {
      atom_vars_.push_back(vars(indices.atom(id)));
    }
    uint64_t set = vars(expr.index);
    for (ExprId arg : expr.args) set |= vars_[arg];
    exprs_.push_back(std::move(expr));
    vars_.push_back(set);
  }
  return at->second;
}

ExprId ExprPool::constant(DType dtype, double value) {
  if (!is_float(dtype)) return integer(dtype, static_cast<int64_t>(value));
  return add({.kind = Expr::Kind::kConstant, .dtype = dtype, .bits = std::bit_cast<uint64_t>(value)});
}

ExprId ExprPool::integer(DType dtype, int64_t value) {
  if (is_float(dtype)) return constant(dtype, static_cast<double>(value));
  return add({.kind = Expr::Kind::kConstant, .dtype = dtype, .bits = static_cast<uint64_t>(value)});
}

ExprId ExprPool::load(DType dtype, uint32_t buffer, Index at) {
  return add({.kind = Expr::Kind::kLoad, .dtype = dtype, .id = buffer, .index = std::move(at)});
}

ExprId ExprPool::local(DType dtype, uint32_t id, Index varies_with) {
  return add({.kind = Expr::Kind::kLocal, .dtype = dtype, .id = id, .index = std::move(varies_with)});
}

Index ExprPool::substitute(const Index& index, const std::map<VarId, Index>& with,
                           const std::map<ExprId, ExprId>& exprs) {
  return indices.substitute(index, with, [&](ExprId e) { return substitute(e, with, exprs); });
}

ExprId ExprPool::substitute(ExprId id, const std::map<VarId, Index>& with, const std::map<ExprId, ExprId>& exprs) {
  std::map<ExprId, ExprId> made = exprs;
  const auto now = [&](ExprId of) { return made.at(of); };
  return made_once(
      *this, made, id,
      [&](ExprId of) {
        Expr e = exprs_[of];
        for (ExprId& arg : e.args) arg = now(arg);
        e.index = indices.substitute(e.index, with, now);
        const ExprId result = e.kind == Expr::Kind::kGuard ? guard(e.index, e.lo, e.hi, e.args[0], e.args[1]) : add(e);
        if (const std::string* text = description(of)) describe(result, *text);
        return result;
      },
      Follow::kAll);
}

ExprId ExprPool::guard(Index index, int64_t lo, int64_t hi, ExprId then, ExprId otherwise) {
  if (then == otherwise) return then;
  const Range r = indices.range(index);
  if (r.lo >= lo && r.hi < hi) return then;
  if (r.hi < lo || r.lo >= hi) return otherwise;
  const DType dtype = exprs_[then].dtype;
  return add({.kind = Expr::Kind::kGuard,
              .dtype = dtype,
              .args = {then, otherwise},
              .index = std::move(index),
              .lo = lo,
              .hi = hi});
}

void ExprPool::describe(ExprId id, std::string text) {
  descriptions_.try_emplace(id, std::move(text));
}

const std::string* ExprPool::description(ExprId id) const {
  const auto at = descriptions_.find(id);
  return at == descriptions_.end() ? nullptr : &at->second;
}

namespace {

// One element of a tensor, in the form of Expr::bits.
uint64_t element_bits(const Tensor& tensor, int64_t position) {
  const size_t size = size_of(tensor.dtype());
  uint64_t raw = 0;
  std::memcpy(&raw, static_cast<const char*>(tensor.data()) + static_cast<size_t>(position) * size, size);
  switch (tensor.dtype()) {
    case DType::kF64:
      return raw;
    case DType::kF32:
      return std::bit_cast<uint64_t>(double{std::bit_cast<float>(static_cast<uint32_t>(raw))});
    default:
      break;
  }
  if (is_float(tensor.dtype())) {
    return std::bit_cast<uint64_t>(decode_float(tensor.dtype(), static_cast<uint32_t>(raw)));
  }
  if (is_signed_int(tensor.dtype()) && size < 8) {
    const int shift = 64 - 8 * static_cast<int>(size);
    return static_cast<uint64_t>(static_cast<int64_t>(raw << shift) >> shift);
  }
  return raw;
}

}  // namespace

std::optional<ExprId> splat_of(ExprPool& pool, const Tensor& tensor) {
  if (tensor.size() == 0) return std::nullopt;
  const size_t size = size_of(tensor.dtype());
  const auto* bytes = static_cast<const char*>(tensor.data());
  if (tensor.size() > 1 && std::memcmp(bytes, bytes + size, (static_cast<size_t>(tensor.size()) - 1) * size) != 0) {
    return std::nullopt;
  }
  return pool.add({.kind = Expr::Kind::kConstant, .dtype = tensor.dtype(), .bits = element_bits(tensor, 0)});
}

}  // namespace heddle::schedule
