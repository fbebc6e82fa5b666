#pragma once

#include <map>

#include "base/dag_walk.h"
#include "schedule/expr/expr.h"

namespace heddle::schedule {

// Calls `next(value)` for each expression from which an index is computed, including those inside divisions, in order.
template <typename Next>
void for_each_dynamic(const IndexPool& indices, const Index& index, const Next& next) {
  if (!indices.reads_values(index)) return;
  DagWalk walk;
  const auto terms = [&](const Index& of, const auto& push) {
    for (const auto& term : of.terms) {
      if (indices.reads_values(term.first)) push(term.first);
    }
  };
  terms(index, [&](AtomId root) {
    walk.run(
        root, [&](AtomId id, const auto& push) { terms(indices.atom(id).arg, push); },
        [&](AtomId id) {
          if (indices.atom(id).kind == Atom::Kind::kDynamic) next(indices.atom(id).id);
          return true;
        },
        [](AtomId) {});
  });
}

// The edges that a walk follows. kArguments: arguments. kIndices: also the expressions that indices are computed from.
// kAll: also the expressions that a local varies with, although it is not computed from them.
enum class Follow : uint8_t { kArguments, kIndices, kAll };

// A depth-first walk that visits each expression once over all calls of run(). Always use it to search below an
// expression: expressions are shared so often that plain recursion would visit some of them exponentially often.
class ExprWalk {
 public:
  explicit ExprWalk(const ExprPool& pool, Follow follow = Follow::kArguments) : pool_(pool), follow_(follow) {}

  // Calls `enter(e)` before visiting the operands of e, and `leave(e)` after visiting them. If `enter(e)` returns
  // false, the operands and `leave(e)` are skipped.
  template <typename Enter, typename Leave>
  void run(ExprId root, const Enter& enter, const Leave& leave) {
    walk_.run(
        root, [this](ExprId e, const auto& next) { operands(e, next); }, enter, leave);
  }
  template <typename Enter>
  void run(ExprId root, const Enter& enter) {
    run(root, enter, [](ExprId) {});
  }

  bool has_seen(ExprId e) const { return walk_.has_seen(e); }

 private:
  template <typename Next>
  void operands(ExprId e, const Next& next) const {
    const Expr& expr = pool_[e];
    for (const ExprId arg : expr.args) next(arg);
    const bool indices = follow_ == Follow::kAll || (follow_ == Follow::kIndices && expr.kind != Expr::Kind::kLocal);
    if (indices) for_each_dynamic(pool_.indices, expr.index, next);
  }

  const ExprPool& pool_;
  const Follow follow_;
  DagWalk walk_;
};

// The value of make(e) for `root`. `made` keeps the values of all expressions below it; make(e) finds those of e's
// operands there.
template <typename T, typename Make>
const T& made_once(const ExprPool& pool, std::map<ExprId, T>& made, ExprId root, const Make& make,
                   Follow follow = Follow::kArguments) {
  ExprWalk(pool, follow)
      .run(
          root, [&](ExprId e) { return !made.contains(e); }, [&](ExprId e) { made[e] = make(e); });
  return made.at(root);
}

// Calls f once for each expression reachable from `roots`, including through the indices of loads.
void visit_exprs(const ExprPool& pool, const std::vector<ExprId>& roots, const std::function<void(ExprId)>& f);
// The expressions that are computed regardless of guards: those reachable from `roots` without entering a branch of a
// guard. In ascending order.
std::vector<ExprId> unconditional(const ExprPool& pool, const std::vector<ExprId>& roots);
// The topmost expressions below `roots` for which `take` returns true, in depth-first order.
std::vector<ExprId> topmost(const ExprPool& pool, const std::vector<ExprId>& roots,
                            const std::function<bool(ExprId)>& take);

}  // namespace heddle::schedule
