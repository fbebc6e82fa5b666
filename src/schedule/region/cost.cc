#include "schedule/region/cost.h"

#include <algorithm>

#include "schedule/expr/expr_walk.h"

namespace heddle::schedule {

std::optional<int64_t> stride_along(const ExprPool& pool, const Index& index, VarId var) {
  int64_t stride = 0;
  for (const auto& [id, c] : index.terms) {
    const Atom& atom = pool.indices.atom(id);
    if (atom.kind == Atom::Kind::kVar) {
      if (atom.id == var) stride += c;
    } else if ((pool.vars(Index{0, {{id, 1}}}) >> var & 1) != 0) {
      return std::nullopt;
    }
  }
  return stride;
}

double node_cycles(const ExprPool& pool, ExprId e) {
  const Expr& expr = pool[e];
  switch (expr.kind) {
    case Expr::Kind::kConstant:
    case Expr::Kind::kLocal:
      return 0;
    case Expr::Kind::kLoad: {
      // A dynamic index or a division makes every lane a scalar load.
      const bool affine = std::all_of(expr.index.terms.begin(), expr.index.terms.end(), [&](const auto& term) {
        return pool.indices.atom(term.first).kind == Atom::Kind::kVar;
      });
      return affine ? 1 : 8;
    }
    case Expr::Kind::kIndex:
    case Expr::Kind::kGuard:
      return 1;
    case Expr::Kind::kRandom:
      return 400;
    case Expr::Kind::kOp:
      break;
  }
  return ir::cost_of(expr.op).cycles(expr.args.empty() ? expr.dtype : pool[expr.args[0]].dtype);
}

double varying_cycles(const ExprPool& pool, const std::vector<ExprId>& roots, VarId var) {
  double cycles = 0;
  ExprWalk walk(pool);
  for (const ExprId root : roots) {
    walk.run(root, [&](ExprId e) {
      const bool varies = (pool.vars(e) >> var & 1) != 0;
      if (varies) cycles += node_cycles(pool, e);
      return varies;
    });
  }
  return cycles;
}

double Work::seconds(const CpuTarget& cpu) const {
  return std::max(bytes / (cpu.copy_gbps * 1e9), cycles / (cpu.ghz * 1e9));
}

Work work_of(const KernelExprs& exprs, const ir::Graph& graph, const CpuTarget& cpu) {
  Work work;
  std::vector<double> read(exprs.inputs.size(), 0);
  const auto sweep = [&](ExprId e, uint64_t vars) {
    const auto points = static_cast<double>(exprs.volume(vars));
    visit_exprs(exprs.pool, {e}, [&](ExprId id) {
      const Expr& expr = exprs.pool[id];
      const auto own = static_cast<double>(exprs.volume(exprs.pool.vars(id)));
      // Invariant parts are computed once per value of their own variables.
      work.cycles += std::min(points, own) * node_cycles(exprs.pool, id) / cpu.lanes_f32();
      if (expr.kind == Expr::Kind::kLoad && expr.id < read.size()) {
        const InputOperand& leaf = exprs.inputs[expr.id];
        const double all = static_cast<double>(element_count(leaf.shape));
        read[expr.id] = std::max(read[expr.id], std::min(all, own) * static_cast<double>(size_of(leaf.dtype)));
      }
    });
  };
  for (const ReductionSite& i : exprs.sites) sweep(i.operand, i.kept | i.reduced);
  for (const Root& root : exprs.roots) {
    uint64_t vars = 0;
    for (VarId v : root.vars) vars |= uint64_t{1} << v;
    sweep(root.expr, vars);
    work.bytes += static_cast<double>(exprs.volume(vars)) * static_cast<double>(size_of(graph.dtype(root.value)));
  }
  for (double bytes : read) work.bytes += bytes;
  return work;
}

}  // namespace heddle::schedule
