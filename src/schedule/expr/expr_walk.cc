#include "schedule/expr/expr_walk.h"

#include <algorithm>

namespace heddle::schedule {

void visit_exprs(const ExprPool& pool, const std::vector<ExprId>& roots, const std::function<void(ExprId)>& f) {
  // The last operands first: prefetches are written in this order.
  const auto operands = [&pool](ExprId e, const auto& next) {
    const Expr& expr = pool[e];
    std::vector<ExprId> below = expr.args;
    if (expr.kind != Expr::Kind::kLocal) {
      for_each_dynamic(pool.indices, expr.index, [&](ExprId value) { below.push_back(value); });
    }
    std::for_each(below.rbegin(), below.rend(), next);
  };
  const auto enter = [&f](ExprId e) {
    f(e);
    return true;
  };
  DagWalk walk;
  for (const ExprId root : roots) walk.run(root, operands, enter, [](ExprId) {});
}

std::vector<ExprId> unconditional(const ExprPool& pool, const std::vector<ExprId>& roots) {
  std::vector<ExprId> found;
  ExprWalk walk(pool);
  for (const ExprId root : roots) {
    walk.run(root, [&](ExprId e) {
      found.push_back(e);
      return pool[e].kind != Expr::Kind::kGuard;
    });
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<ExprId> topmost(const ExprPool& pool, const std::vector<ExprId>& roots,
                            const std::function<bool(ExprId)>& take) {
  std::vector<ExprId> found;
  ExprWalk walk(pool);
  for (const ExprId root : roots) {
    walk.run(root, [&](ExprId e) {
      if (!take(e)) return true;
      found.push_back(e);
      return false;
    });
  }
  return found;
}

}  // namespace heddle::schedule
