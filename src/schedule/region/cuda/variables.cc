#include "schedule/region/cuda/variables.h"

#include <algorithm>
#include <map>
#include <set>

#include "schedule/region/mapping.h"

namespace heddle::schedule {
namespace {

constexpr int64_t kCudaTileMinimum = 8;  // dimensions shorter than this are not worth a transposition

bool is_local_of(const KernelExprs& exprs, ExprId e, const std::set<uint32_t>& ids) {
  return exprs.pool[e].kind == Expr::Kind::kLocal && ids.count(exprs.pool[e].id) != 0;
}

}  // namespace

std::optional<VarId> serial_variable(const KernelExprs& exprs, uint64_t parallel) {
  uint64_t candidates = exprs.all_root_vars() & ~parallel;
  for (VarId v = 0; v < 64; ++v) {
    if (!(candidates >> v & 1)) continue;
    std::set<uint32_t> carried;
    bool rows = false, good = true;
    for (const ReductionSite& i : exprs.sites) {
      if (i.reduced == bit(v) && i.node->op == ir::Op::kReduce) {
        carried.insert(i.local);
      } else {
        good = good && (i.kept & bit(v));
        rows = true;
      }
    }
    if (!good || carried.empty()) continue;
    for (const Root& root : exprs.roots) {
      bool uses = false;
      rows = rows || (vars_of(root) & bit(v)) != 0;
      visit_exprs(exprs.pool, {root.expr}, [&](ExprId e) { uses = uses || is_local_of(exprs, e, carried); });
      good = good && uses != ((vars_of(root) & bit(v)) != 0);
    }
    for (const ReductionSite& i : exprs.sites) {
      visit_exprs(exprs.pool, {i.operand}, [&](ExprId e) { good = good && !is_local_of(exprs, e, carried); });
    }
    if (good && rows) return v;
  }
  return std::nullopt;
}

std::vector<Store> stores_of(const KernelExprs& exprs, const ir::Graph& graph) {
  std::vector<Store> all;
  for (size_t k = 0; k < exprs.roots.size(); ++k) {
    const Root& root = exprs.roots[k];
    all.push_back({static_cast<uint32_t>(exprs.inputs.size() + k), graph.dtype(root.value), root.at, root.expr});
  }
  return all;
}

std::optional<VarId> vector_variable(const KernelExprs& exprs, const ir::Graph& graph, std::optional<VarId> serial) {
  std::optional<VarId> vector;
  std::map<VarId, double> weight;
  const auto access = [&](const Index& index, double cost) {
    for (const auto& [id, c] : index.terms) {
      const Atom& atom = exprs.pool.indices.atom(id);
      if (atom.kind == Atom::Kind::kVar && c == 1) weight[atom.id] += cost;
    }
  };
  // Where nothing is reduced, an access that jumps along the vector costs a sector of memory, whatever its size.
  const bool points = exprs.sites.empty();
  const auto cost_of = [&](uint64_t vars, DType dtype) {
    return static_cast<double>(exprs.volume(vars) * (points ? 1 : static_cast<int64_t>(size_of(dtype))));
  };
  visit_exprs(exprs.pool, exprs.values(), [&](ExprId id) {
    const Expr& expr = exprs.pool[id];
    if (expr.kind == Expr::Kind::kLoad) access(expr.index, cost_of(exprs.pool.vars(id), expr.dtype));
  });
  for (const Store& s : stores_of(exprs, graph)) {
    // A store with a stride costs more than a load with one: it also reads the line. Where nothing is reduced, what
    // jumps along the vector may still lie side by side for neighbouring threads, which serves loads only.
    access(s.at, (points ? 3 : 1.5) * cost_of(exprs.pool.vars(s.at), s.dtype));
  }
  double most = 0;
  for (const auto& [var, cost] : weight) {
    if (cost >= most && exprs.pool.indices.extent(var) > 1 && serial != var) {
      most = cost;
      vector = var;
    }
  }
  if (!vector && !exprs.domain.vars.empty()) vector = exprs.domain.vars.back();
  return vector;
}

std::optional<VarId> most_transposed_variable(const KernelExprs& exprs, VarId vector, uint64_t parallel) {
  std::map<VarId, int64_t> votes;
  visit_exprs(exprs.pool, exprs.values(), [&](ExprId id) {
    const Expr& expr = exprs.pool[id];
    if (expr.kind != Expr::Kind::kLoad || stride_along(exprs.pool, expr.index, vector).value_or(1) <= 1) return;
    for (const auto& [atom_id, c] : expr.index.terms) {
      const Atom& atom = exprs.pool.indices.atom(atom_id);
      if (atom.kind != Atom::Kind::kVar || c != 1 || atom.id == vector || !(parallel & bit(atom.id))) continue;
      if (exprs.pool.indices.extent(atom.id) >= kCudaTileMinimum)
        votes[atom.id] += static_cast<int64_t>(size_of(expr.dtype));
    }
  });
  const auto best = std::max_element(votes.begin(), votes.end(), [](auto& a, auto& b) { return a.second < b.second; });
  if (best == votes.end() || exprs.pool.indices.extent(vector) < kCudaTileMinimum) return std::nullopt;
  // Few elements along the vector: where neighbouring threads lie along the loads, these need no tile.
  const auto other =
      std::find_if(exprs.domain.vars.rbegin(), exprs.domain.vars.rend(), [&](VarId v) { return v != vector; });
  if (exprs.pool.indices.extent(vector) < kTile && *other == best->first &&
      exprs.pool.indices.extent(best->first) >= kTile)
    return std::nullopt;
  return best->first;
}

bool can_carry(const KernelExprs& exprs, VarId serial, VarId vector) {
  constexpr int64_t kLeastColumns = 32;
  if (exprs.pool.indices.extent(vector) < kLeastColumns) return false;
  const uint64_t walked = bit(serial) | bit(vector);
  bool contiguous = true;
  visit_exprs(exprs.pool, exprs.values(), [&](ExprId e) {
    const Expr& expr = exprs.pool[e];
    if (expr.kind != Expr::Kind::kLoad || (exprs.pool.vars(e) & walked) != walked) return;
    contiguous = contiguous && stride_along(exprs.pool, expr.index, vector).value_or(2) <= 1;
  });
  return contiguous;
}

double scattered_seconds(const KernelExprs& exprs, const ir::Graph& graph, VarId vector,
                         std::optional<VarId> transposed, const GpuTarget& cuda) {
  double bytes = 0;
  const auto stride_of = [&](const Index& index, VarId v) {
    return std::abs(stride_along(exprs.pool, index, v).value_or(1));
  };
  const auto access = [&](const Index& index, DType dtype, int64_t stride) {
    const int64_t size = static_cast<int64_t>(size_of(dtype)), times = std::min(kSectorOfMemory / size, stride);
    if (times > 1) bytes += static_cast<double>((times - 1) * size * exprs.volume(exprs.pool.vars(index)));
  };
  visit_exprs(exprs.pool, exprs.values(), [&](ExprId id) {
    const Expr& load = exprs.pool[id];
    if (load.kind != Expr::Kind::kLoad) return;
    const bool by_tile = transposed && stride_of(load.index, *transposed) == 1;
    access(load.index, load.dtype, by_tile ? 1 : stride_of(load.index, vector));
  });
  for (const Store& store : stores_of(exprs, graph)) access(store.at, store.dtype, stride_of(store.at, vector));
  return bytes / (cuda.model.chip.copy_tbps * 1e12);
}

}  // namespace heddle::schedule
