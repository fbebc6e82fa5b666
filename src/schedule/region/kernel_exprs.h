#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "schedule/region/stitch.h"

namespace heddle::schedule {

// Dimensions of a tensor as loop variables: their extents multiply to the element count, row-major. Dimensions are
// split where an index would divide by a factor of theirs, and merged where every access allows it.
struct IterationDomain {
  Shape dims;
  std::vector<int64_t> extents;
  std::vector<VarId> vars;
};

// A value that a kernel computes for its own sake, or one of the parts that it is put together of: `at` is where in the
// value its elements lie.
struct Root {
  ir::ValueId value;
  std::vector<VarId> vars;  // of the root domain, in order: where the elements of this root lie
  ExprId expr = 0;
  Index at;  // linear position in the value
};

// A reduction at one place: its value at given kept indices.
struct ReductionSite {
  ir::ValueId value;
  const ir::Node* node;
  Index position;                 // linear position in the reduction's result
  uint64_t kept, reduced;         // variables
  ExprId operand = 0, along = 0;  // along: position on the reduced dimension, for arg_reduce
  uint32_t local;
  int level = 0;
};

// An input of a kernel: a buffer that exists before the kernel runs.
struct InputOperand {
  ir::ValueId value;
  DType dtype;
  Shape shape;
};

// What the graph around a kernel looks like to it.
struct KernelContext {
  const ir::Graph& graph;
  std::function<bool(ir::ValueId)> is_input;       // made before: read it
  std::function<bool(ir::ValueId)> must_be_input;  // has to be made by a kernel before
  // Of a reduction in parts: the dimension that counts them. Its results may lie on any variables of a larger root.
  std::function<std::optional<size_t>(ir::ValueId)> part_dim = {};
  // Whether a concatenation, cast or not, whose parts are reduced or depend on what is may be a root for each of its
  // parts: those that are made on the same points then are made together.
  bool parts_apart = false;
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

 private:
  using ExtraKey = std::pair<Shape, int>;

  // What a root is computed of: a value, cast by `cast` if there is one, at `first` along dimension `dim` of the
  // root's.
  struct Target {
    ir::ValueId value, part;
    size_t dim = 0;
    int64_t first = 0;
    const ir::Node* cast = nullptr;
  };

  void add_targets(ir::ValueId value);
  bool reduces(ir::ValueId value) const;
  Index place_in(const Target& target, const std::vector<Index>& at);
  void build();
  bool split();
  void merge();
  std::optional<ExprId> bind(ir::ValueId value, const std::vector<Index>& at);
  bool outgrows(ir::ValueId value, const std::vector<Index>& at);
  void need_repeated();
  void check_size();
  void need_shared(const std::map<ExprId, double>& sizes);
  ExprId reduce(ir::ValueId value, const std::vector<Index>& at);
  ExprId result(uint32_t site, DType dtype);
  std::vector<VarId> reduced_vars(const Shape& reduced, uint64_t kept);
  bool place(Root& root, ir::ValueId value, size_t index);
  std::optional<size_t> part_dim(ir::ValueId value) const;
  bool place_part(Root& root, const Shape& shape, size_t part_dim);
  void split_for_part(const Shape& shape, size_t part_dim);
  void scan_root(Root& root, const ir::Node& node);
  int level_of(ExprId operand) const;  // after how many reductions its inputs are known
  void make_vars(IterationDomain& domain);
  Index linear(const std::vector<VarId>& vars);
  IterationDomain* domain_of(VarId var, size_t& position);
  bool mergeable(VarId a, VarId b);

  const KernelContext& context_;
  std::vector<ir::ValueId> values_;
  std::vector<Target> targets_;
  bool by_dims_ = false;  // smaller roots lie on variables with the extents of their dimensions
  std::map<ExtraKey, IterationDomain> extra_;
  Inliner* inliner_ = nullptr;
  std::map<std::pair<ir::ValueId, std::vector<Index>>, uint32_t> site_ids_;
  std::vector<std::pair<ir::ValueId, ExprId>> made_;
  std::map<ir::ValueId, int> places_;  // at how many indices each value is computed
};

Combine combine_of(const ir::Node& node);

}  // namespace heddle::schedule
