#pragma once

#include "base/dag_walk.h"
#include "schedule/expr/expr.h"

namespace heddle::schedule {

// `next(value)` for the expressions whose values an index is computed from, in order; behind divisions, too.
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

// What a walk over expressions follows: arguments; the values that indices are computed from, too; and those of what a
// local varies with, too, which it is not computed from.
enum class Follow : uint8_t { kArguments, kIndices, kAll };

// Depth first over expressions, each visited once, by all calls together. The one way to look at what lies below an
// expression: kernels of models share values many times over.
class ExprWalk {
 public:
  explicit ExprWalk(const ExprPool& pool, Follow follow = Follow::kArguments) : pool_(pool), follow_(follow) {}

  // `enter(e)` before what e is computed from, which it leaves out (with leave(e)) by returning false; `leave(e)`
  // after.
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

// Visits every expression that `roots` reach, through the indices of loads too, each once.
void visit_exprs(const ExprPool& pool, const std::vector<ExprId>& roots, const std::function<void(ExprId)>& f);
// What is computed whatever guards say: what `roots` reach without the sides of a guard, ascending.
std::vector<ExprId> unconditional(const ExprPool& pool, const std::vector<ExprId>& roots);
// The topmost expressions below `roots` that `take` accepts, in order of depth first.
std::vector<ExprId> topmost(const ExprPool& pool, const std::vector<ExprId>& roots,
                            const std::function<bool(ExprId)>& take);

}  // namespace heddle::schedule
