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

// An output value of a kernel, or a part of such a value if it is assembled from parts.
struct Root {
  ir::ValueId value;
  std::vector<VarId> vars;  // variables of the root domain, in order, that index the elements of this root
  ExprId expr = 0;
  Index at;  // linear index of an element in the value
};

// An input of a kernel: a buffer that exists before the kernel runs.
struct InputOperand {
  ir::ValueId value;
  DType dtype;
  Shape shape;
};

// An iteration space of rows that are divided into parts: the rows of a part, the parts, and the columns. With n parts,
// part p has row p and every n-th row after it; later parts may have one row fewer.
struct RowParts {
  std::vector<int64_t> extents;
  int64_t rows = 0;  // of all parts together
  bool operator==(const RowParts&) const = default;
};

// The expressions of a set of roots, over loop variables. The constructor determines the reductions, the buffers to
// read, and the values that earlier kernels must compute.
class KernelExprs {
 public:
  // The largest root covers the root domain, unless `parts` gives the domain. Each other root is indexed by all or some
  // of the domain's variables.
  KernelExprs(const KernelContext& context, std::vector<ir::ValueId> roots, std::optional<RowParts> parts = {});

  ExprPool pool;
  IterationDomain domain;
  std::vector<Root> roots;  // in the order of the kernel's outputs
  std::vector<ReductionSite> sites;
  std::vector<InputOperand> inputs;
  std::set<ir::ValueId> needed;  // values that earlier kernels must compute; if any, other members are incomplete
  bool too_large = false;        // `needed` has values only because one kernel would be too large
  bool fits = true;              // false: the root domain cannot index some root
  std::optional<int64_t> rows;   // of all parts together, if some parts have one row fewer than the domain says

  int64_t volume(uint64_t vars) const;
  uint64_t all_root_vars() const;
  // The operands of all reductions, and the roots.
  std::vector<ExprId> values() const;
  // The values that are computed or loaded for the roots. A value has one entry for each index at which it is needed.
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
  // The variables of the root domain that index the elements of a root. nullopt if no variables can index them.
  std::optional<std::vector<VarId>> place(ir::ValueId value) const;
  std::optional<size_t> part_dim(ir::ValueId value) const;

  const KernelContext& context_;
  std::vector<ir::ValueId> values_;
  std::vector<RootTarget> targets_;
  int64_t parts_ = 0;     // if `rows` is set
  bool by_dims_ = false;  // a smaller root uses the variables whose extents equal the root's dimensions
  std::map<ExtraKey, IterationDomain> extra_;
  Inliner* inliner_ = nullptr;
  std::map<std::pair<ir::ValueId, std::vector<Index>>, uint32_t> site_ids_;
  std::vector<std::pair<ir::ValueId, ExprId>> made_;
  std::map<ir::ValueId, int> places_;  // the number of indices at which each value is computed
};

}  // namespace heddle::schedule
