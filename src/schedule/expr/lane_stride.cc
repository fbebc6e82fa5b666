#include "schedule/expr/lane_stride.h"

namespace heddle::schedule {

std::optional<int64_t> lane_stride(const ExprPool& pool, const Index& at, const LanesAlong& lanes,
                                   const std::map<VarId, int64_t>& multiples,
                                   const std::function<bool(ExprId)>& varies) {
  int64_t stride = 0;
  for (const auto& [id, c] : at.terms) {
    const Atom& atom = pool.indices.atom(id);
    if (atom.kind == Atom::Kind::kVar) {
      if (atom.id == lanes.var) stride += c;
      continue;
    }
    if ((pool.vars(Index{0, {{id, 1}}}) >> lanes.var & 1) == 0) {
      if (atom.kind == Atom::Kind::kDynamic && varies && varies(atom.id)) return std::nullopt;
      continue;
    }
    // Within an aligned vector a quotient stays the same and a remainder counts on.
    const bool fits = lanes.aligned > 1 && atom.a % lanes.aligned == 0 &&
                      (atom.kind == Atom::Kind::kDiv || atom.kind == Atom::Kind::kMod);
    if (!fits || lane_stride(pool, atom.arg, lanes, multiples, varies) != 1) return std::nullopt;
    if (pool.indices.divisor(atom.arg, multiples) % lanes.aligned != 0) return std::nullopt;
    if (atom.kind == Atom::Kind::kMod) stride += c;
  }
  return stride;
}

}  // namespace heddle::schedule
