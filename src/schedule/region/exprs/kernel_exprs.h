#pragma once

#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "schedule/expr/inline.h"
#include "schedule/region/exprs/domain.h"
#include "schedule/region/exprs/sites.h"
#include "schedule/region/exprs/targets.h"

namespace heddle::schedule {

// A value that a kernel computes for its own sake, or one of the parts that it is put together of: `at` is where in the
// value its elements lie.
struct Root {
  ir::ValueId value;
  std::vector<VarId> vars;  // of the root domain, in order: where the elements of this root lie
  ExprId expr = 0;
  Index at;  // linear position in the value
};

// An input of a kernel: a buffer that exists before the kernel runs.
struct InputOperand {
  ir::ValueId value;
  DType dtype;
  Shape shape;
};

// The expressions of a set of roots over loop variables. Making them finds the reductions, the buffers read, and the
// values that other kernels have to make first.
class KernelExprs {
 public:
  // The largest root spans the root domain; the others lie on all or some of its variables. `extents` are those of the
  // root domain where it is to be cut in a way that the largest root alone does not ask for.
  KernelExprs(const KernelContext& context, std::vector<ir::ValueId> roots, std::vector<int64_t> extents = {});

  ExprPool pool;
  IterationDomain domain;
  std::vector<Root> roots;  // in the order of the kernel's outputs
  std::vector<ReductionSite> sites;
  std::vector<InputOperand> inputs;
  std::set<ir::ValueId> needed;  // values to be made by kernels before; where not empty the rest is incomplete
  bool too_large = false;        // some of them only because one kernel would be too large
  bool fits = true;              // false: a root does not lie on the root domain

  int64_t volume(uint64_t vars) const;
  uint64_t all_root_vars() const;
  // What reductions read, and roots.
  std::vector<ExprId> values() const;
  // What is computed for the roots, or loaded, at each of its places.
  const std::vector<std::pair<ir::ValueId, ExprId>>& made() const { return made_; }

 private:
  using ExtraKey = std::pair<Shape, int>;

  void build();
  bool split();
  void merge();
  std::optional<ExprId> bind(ir::ValueId value, const std::vector<Index>& at);
  bool outgrows(ir::ValueId value, const std::vector<Index>& at);
  void check_size();
  void need(std::optional<ir::ValueId> value, std::string_view of);
  bool is_own(ir::ValueId value) const;
  bool may_be_made_before(ir::ValueId value) const;
  std::optional<ir::ValueId> repeated() const;
  ExprId reduce(ir::ValueId value, const std::vector<Index>& at);
  std::vector<VarId> reduced_vars(const Shape& reduced, uint64_t kept);
  // The variables of the root domain that the elements of a root lie on; nullopt: there are none.
  std::optional<std::vector<VarId>> place(ir::ValueId value, bool largest) const;
  std::optional<size_t> part_dim(ir::ValueId value) const;
  void scan_root(Root& root, const ir::Node& node);

  const KernelContext& context_;
  std::vector<ir::ValueId> values_;
  std::vector<RootTarget> targets_;
  bool by_dims_ = false;  // smaller roots lie on variables with the extents of their dimensions
  std::map<ExtraKey, IterationDomain> extra_;
  Inliner* inliner_ = nullptr;
  std::map<std::pair<ir::ValueId, std::vector<Index>>, uint32_t> site_ids_;
  std::vector<std::pair<ir::ValueId, ExprId>> made_;
  std::map<ir::ValueId, int> places_;  // at how many indices each value is computed
};

}  // namespace heddle::schedule
