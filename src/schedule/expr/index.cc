#include "schedule/expr/index.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"

namespace heddle::schedule {
namespace {

constexpr uint32_t kMostSize = 1 << 20;  // at which sizes of indices saturate

int64_t floor_div(int64_t a, int64_t b) {
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}
int64_t floor_mod(int64_t a, int64_t b) {
  return a - b * floor_div(a, b);
}

}  // namespace

VarId IndexPool::new_var(int64_t extent) {
  HEDDLE_CHECK(extent >= 1);
  extents_.push_back(extent);
  return static_cast<VarId>(extents_.size() - 1);
}

AtomId IndexPool::intern(Atom atom) {
  const Key key{atom.kind, atom.id, atom.a, atom.b, atom.arg, atom.range.lo, atom.range.hi};
  const auto [at, is_new] = interned_.try_emplace(key, static_cast<AtomId>(atoms_.size()));
  if (is_new) {
    atom.size = std::min(kMostSize, size(atom.arg) + 1);
    atom.reads_values = atom.kind == Atom::Kind::kDynamic || reads_values(atom.arg);
    atoms_.push_back(std::move(atom));
  }
  return at->second;
}

bool IndexPool::reads_values(const Index& a) const {
  return std::any_of(a.terms.begin(), a.terms.end(), [&](const auto& term) { return reads_values(term.first); });
}

uint32_t IndexPool::size(const Index& a) const {
  uint32_t sum = 0;
  for (const auto& term : a.terms) sum = std::min(kMostSize, sum + atoms_[term.first].size);
  return sum;
}

Index IndexPool::var(VarId id) {
  return var(id, {0, extents_[id] - 1});
}

Index IndexPool::var(VarId id, Range range) {
  if (range.lo == range.hi) return constant(range.lo);
  return of_atom({Atom::Kind::kVar, id, 0, 0, {}, range});
}

Range IndexPool::range(const Index& a) const {
  Range r{a.constant, a.constant};
  for (const auto& [id, c] : a.terms) {
    const Range t = atoms_[id].range;
    r.lo += c * (c > 0 ? t.lo : t.hi);
    r.hi += c * (c > 0 ? t.hi : t.lo);
  }
  if (!limit_) return r;
  int64_t times = 0, outer = 0;
  for (const auto& [id, c] : a.terms) {
    if (id == limit_->inner) times = c;
    if (id == limit_->outer) outer = c;
  }
  if (times > 0 && outer == times * limit_->stride) {
    const int64_t most = atoms_[limit_->outer].range.hi * limit_->stride + atoms_[limit_->inner].range.hi;
    r.hi -= times * (most - (limit_->end - 1));
  }
  return r;
}

void IndexPool::limit(VarId outer, int64_t stride, VarId inner, int64_t end) {
  limit_ = {var(outer).terms[0].first, var(inner).terms[0].first, stride, end};
}

int64_t IndexPool::divisor(const Index& a, const std::map<VarId, int64_t>& multiples) const {
  int64_t d = a.constant < 0 ? -a.constant : a.constant;
  for (const auto& [id, c] : a.terms) {
    const Atom& atom = atoms_[id];
    int64_t own = 1;
    if (atom.kind == Atom::Kind::kVar) {
      const auto known = multiples.find(atom.id);
      if (known != multiples.end()) own = known->second;
    } else if (atom.kind == Atom::Kind::kMod) {
      own = std::gcd(atom.a, divisor(atom.arg, multiples));
    }
    d = std::gcd(d, c * own);
  }
  return d;
}

void IndexPool::add_term(Index& to, AtomId atom, int64_t coefficient) {
  auto at = std::lower_bound(to.terms.begin(), to.terms.end(), atom,
                             [](const auto& term, AtomId id) { return term.first < id; });
  if (at != to.terms.end() && at->first == atom) {
    at->second += coefficient;
    if (at->second == 0) to.terms.erase(at);
  } else if (coefficient != 0) {
    to.terms.insert(at, {atom, coefficient});
  }
}

Index IndexPool::add(const Index& a, const Index& b) {
  Index r = a;
  r.constant += b.constant;
  for (const auto& [atom, c] : b.terms) add_term(r, atom, c);
  return merge_div_mod(std::move(r));
}

// k * (x / k) + x % k is x: what a reshape takes apart, the address computation puts together again.
Index IndexPool::merge_div_mod(Index a) {
  for (size_t i = 0; i < a.terms.size(); ++i) {
    const auto [mod_id, c] = a.terms[i];
    if (atoms_[mod_id].kind != Atom::Kind::kMod) continue;
    const Atom mod = atoms_[mod_id];
    const Index quotient = div(mod.arg, mod.a);
    if (quotient.terms.size() != 1 || quotient.terms[0].second != 1) continue;
    const AtomId div_id = quotient.terms[0].first;
    const auto at = std::find(a.terms.begin(), a.terms.end(), std::pair<AtomId, int64_t>{div_id, c * mod.a});
    if (at == a.terms.end()) continue;
    add_term(a, div_id, -c * mod.a);
    add_term(a, mod_id, -c);
    a.constant -= c * mod.a * quotient.constant;
    return add(a, scale(mod.arg, c));
  }
  return a;
}

Index IndexPool::scale(const Index& a, int64_t factor) {
  if (factor == 0) return {};
  Index r = a;
  r.constant *= factor;
  for (auto& term : r.terms) term.second *= factor;
  return r;
}

Index IndexPool::offset(const Index& a, int64_t value) {
  Index r = a;
  r.constant += value;
  return r;
}

namespace {

// a = k * quotient + rest. The rest keeps the terms whose coefficients k does not divide.
struct Divided {
  Index quotient, rest;
};

Divided divide_terms(const Index& a, int64_t k) {
  Divided parts{{floor_div(a.constant, k), {}}, {floor_mod(a.constant, k), {}}};
  for (const auto& [atom, c] : a.terms) {
    const bool exact = c % k == 0;
    (exact ? parts.quotient : parts.rest).terms.push_back({atom, exact ? c / k : c});
  }
  return parts;
}

// floor(a / g) for a g that divides all coefficients.
Index divide_all(const Index& a, int64_t g) {
  Index reduced{floor_div(a.constant, g), {}};
  for (const auto& [atom, c] : a.terms) reduced.terms.push_back({atom, c / g});
  return reduced;
}

int64_t common_divisor(const Index& a, int64_t k) {
  for (const auto& term : a.terms) k = std::gcd(k, term.second);
  return k;
}

}  // namespace

// a = g * first + second with second in [0, g), for some g > 1 that divides k.
std::optional<std::tuple<int64_t, Index, Index>> IndexPool::split_off(const Index& a, int64_t k) const {
  for (const auto& term : a.terms) {
    const int64_t g = std::gcd(k, term.second);
    if (g == 1 || g == k) continue;
    auto [first, second] = divide_terms(a, g);
    const Range r = range(second);
    if (r.lo >= 0 && r.hi < g) return std::tuple(g, std::move(first), std::move(second));
  }
  return std::nullopt;
}

Index IndexPool::div(const Index& a, int64_t k) {
  HEDDLE_CHECK(k >= 1);
  if (k == 1) return a;
  auto [quotient, rest] = divide_terms(a, k);
  const Range r = range(rest);
  if (floor_div(r.lo, k) == floor_div(r.hi, k)) {
    quotient.constant += floor_div(r.lo, k);
    return quotient;
  }
  // floor((g*x + c) / k) = floor((x + floor(c/g)) / (k/g))
  if (const int64_t g = common_divisor(rest, k); g > 1) return add(quotient, div(divide_all(rest, g), k / g));
  if (const auto parts = split_off(rest, k)) {
    return add(quotient, div(std::get<1>(*parts), k / std::get<0>(*parts)));
  }
  if (rest.terms.size() == 1 && rest.terms[0].second == 1 && rest.constant == 0) {
    const Atom inner = atoms_[rest.terms[0].first];
    if (inner.kind == Atom::Kind::kDiv) return add(quotient, div(inner.arg, inner.a * k));
    // (x mod m) / k with k dividing m is (x / k) mod (m / k).
    if (inner.kind == Atom::Kind::kMod && inner.a % k == 0) return add(quotient, mod(div(inner.arg, k), inner.a / k));
  }
  const Index atom = of_atom({Atom::Kind::kDiv, 0, k, 0, rest, {floor_div(r.lo, k), floor_div(r.hi, k)}});
  return add(quotient, atom);
}

Index IndexPool::mod(const Index& a, int64_t k) {
  HEDDLE_CHECK(k >= 1);
  if (k == 1) return {};
  const Index rest = divide_terms(a, k).rest;
  const Range r = range(rest);
  if (floor_div(r.lo, k) == floor_div(r.hi, k)) return offset(rest, -k * floor_div(r.lo, k));
  if (const int64_t g = common_divisor(rest, k); g > 1) {
    // (g*x + c) mod k = g * ((x + floor(c/g)) mod (k/g)) + c mod g
    return offset(scale(mod(divide_all(rest, g), k / g), g), floor_mod(rest.constant, g));
  }
  if (const auto parts = split_off(rest, k)) {
    const auto& [factor, first, second] = *parts;
    return add(scale(mod(first, k / factor), factor), second);
  }
  if (rest.terms.size() == 1 && rest.terms[0].second == 1 && rest.constant == 0) {
    const Atom inner = atoms_[rest.terms[0].first];
    if (inner.kind == Atom::Kind::kMod && inner.a % k == 0) return mod(inner.arg, k);
  }
  return of_atom({Atom::Kind::kMod, 0, k, 0, rest, {0, k - 1}});
}

Index IndexPool::clamp(const Index& a, int64_t lo, int64_t hi) {
  const Range r = range(a);
  if (r.lo >= lo && r.hi <= hi) return a;
  if (r.hi <= lo) return constant(lo);
  if (r.lo >= hi) return constant(hi);
  return of_atom({Atom::Kind::kClamp, 0, lo, hi, a, {std::max(lo, r.lo), std::min(hi, r.hi)}});
}

Index IndexPool::reflect(const Index& a, int64_t extent) {
  const Range r = range(a);
  if (r.lo >= 0 && r.hi < extent) return a;
  if (extent == 1) return {};
  if (r.hi <= 0 && r.lo > -extent) return scale(a, -1);
  if (r.lo >= extent - 1 && r.hi <= 2 * extent - 2) return offset(scale(a, -1), 2 * extent - 2);
  return of_atom({Atom::Kind::kReflect, 0, extent, 0, a, {0, extent - 1}});
}

Index IndexPool::dynamic(ExprId value, int64_t extent, bool inside) {
  return of_atom({Atom::Kind::kDynamic, value, extent, inside ? 1 : 0, {}, {0, std::max<int64_t>(extent - 1, 0)}});
}

Index IndexPool::linear(std::span<const Index> at, const Shape& shape) {
  HEDDLE_CHECK(at.size() == shape.size());
  Index r;
  int64_t stride = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    if (shape[d] != 1) r = add(r, scale(at[d], stride));
    stride *= shape[d];
  }
  return r;
}

std::vector<Index> IndexPool::delinear(const Index& position, const Shape& shape) {
  std::vector<Index> at(shape.size());
  int64_t stride = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    if (shape[d] > 1) at[d] = mod(div(position, stride), shape[d]);
    stride *= std::max<int64_t>(shape[d], 1);
  }
  return at;
}

Index IndexPool::substitute(const Index& a, const std::map<VarId, Index>& with,
                            const std::function<ExprId(ExprId)>& expr) {
  Index r = constant(a.constant);
  for (const auto& [id, c] : a.terms) {
    const Atom atom = atoms_[id];
    Index t;
    switch (atom.kind) {
      case Atom::Kind::kVar: {
        const auto at = with.find(atom.id);
        t = at == with.end() ? Index{0, {{id, 1}}} : at->second;
        break;
      }
      case Atom::Kind::kDiv:
        t = div(substitute(atom.arg, with, expr), atom.a);
        break;
      case Atom::Kind::kMod:
        t = mod(substitute(atom.arg, with, expr), atom.a);
        break;
      case Atom::Kind::kClamp:
        t = clamp(substitute(atom.arg, with, expr), atom.a, atom.b);
        break;
      case Atom::Kind::kReflect:
        t = reflect(substitute(atom.arg, with, expr), atom.a);
        break;
      case Atom::Kind::kDynamic:
        t = dynamic(expr(atom.id), atom.a, atom.b != 0);
        break;
    }
    r = add(r, scale(t, c));
  }
  return r;
}

}  // namespace heddle::schedule
