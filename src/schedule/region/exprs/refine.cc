#include "schedule/region/exprs/refine.h"

#include <algorithm>

#include "schedule/expr/expr_walk.h"

namespace heddle::schedule {

std::map<VarId, int64_t> split_factors(const KernelExprs& exprs) {
  const IndexPool& indices = exprs.pool.indices;
  std::map<VarId, int64_t> factors;
  const std::function<void(const Index&)> look = [&](const Index& index) {
    for (const auto& term : index.terms) {
      const Atom& atom = indices.atom(term.first);
      look(atom.arg);
      if (atom.kind != Atom::Kind::kDiv && atom.kind != Atom::Kind::kMod) continue;
      for (const auto& [id, c] : atom.arg.terms) {
        const Atom& inner = indices.atom(id);
        if (inner.kind != Atom::Kind::kVar || c < 1 || atom.a % c != 0) continue;
        const int64_t k = atom.a / c, extent = indices.extent(inner.id);
        if (k > 1 && k < extent && extent % k == 0) factors.emplace(inner.id, k);
      }
    }
  };
  visit_exprs(exprs.pool, exprs.values(), [&](ExprId e) {
    const Expr::Kind kind = exprs.pool[e].kind;
    if (kind == Expr::Kind::kLoad || kind == Expr::Kind::kLocal) look(exprs.pool[e].index);
  });
  for (const Root& root : exprs.roots) look(root.at);
  return factors;
}

bool mergeable(const KernelExprs& exprs, VarId a, VarId b) {
  const IndexPool& indices = exprs.pool.indices;
  const uint64_t bit_a = uint64_t{1} << a, bit_b = uint64_t{1} << b;
  const int64_t extent = indices.extent(b);
  const auto splits = [&](uint64_t set) { return ((set & bit_a) != 0) != ((set & bit_b) != 0); };
  for (const Root& root : exprs.roots) {
    const auto has = [&](VarId v) { return std::find(root.vars.begin(), root.vars.end(), v) != root.vars.end(); };
    if (has(a) != has(b)) return false;
  }
  for (const ReductionSite& i : exprs.sites) {
    if (splits(i.kept) || splits(i.reduced)) return false;
  }
  bool good = true;
  const auto look = [&](const Index& index) {
    int64_t ca = 0, cb = 0;
    for (const auto& [id, c] : index.terms) {
      const Atom& atom = indices.atom(id);
      if (atom.kind == Atom::Kind::kVar) {
        if (atom.id == a) ca = c;
        if (atom.id == b) cb = c;
      } else {
        const Index alone{0, {{id, 1}}};
        // The expressions behind a dynamic index are visited themselves.
        if (atom.kind != Atom::Kind::kDynamic && (exprs.pool.vars(alone) & (bit_a | bit_b)) != 0) good = false;
      }
    }
    if (ca != cb * extent) good = false;
  };
  visit_exprs(exprs.pool, exprs.values(), [&](ExprId e) { look(exprs.pool[e].index); });
  for (const Root& root : exprs.roots) look(root.at);
  return good;
}

std::vector<int64_t> merged_extents(const KernelExprs& exprs, const IterationDomain& domain, size_t apart) {
  std::vector<int64_t> extents = domain.extents;
  for (size_t i = extents.size(); i-- > apart + 1;) {
    if (!mergeable(exprs, domain.vars[i - 1], domain.vars[i])) continue;
    extents[i - 1] *= extents[i];
    extents.erase(extents.begin() + static_cast<int64_t>(i));
  }
  return extents;
}

}  // namespace heddle::schedule
