#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "schedule/region/exprs/kernel_exprs.h"

namespace heddle::schedule {

// A group as a graph of its own, which the scheduler may rewrite. Inputs are parameters, except constants with one
// value throughout, which become literals in the text.
struct LocalGraph {
  ir::Graph graph;
  std::map<ir::ValueId, ir::ValueId> outer;  // parameters and outputs: the value of the whole graph
  std::set<ir::ValueId> forced;              // values that go through a workspace
  std::set<ir::ValueId> whole;               // reductions that are not to be split (further)
  std::set<ir::ValueId> folded;              // reductions whose rows are joined already
  std::map<ir::ValueId, size_t> part_dim;    // of a reduction in parts: the dimension of the parts
  // Pairs of forced values that one kernel makes together; the first is computed from the second.
  std::set<std::pair<ir::ValueId, ir::ValueId>> paired;
};

// Copies a graph. Its user replaces nodes during the copy by emitting others into `to`.
class GraphCopier {
 public:
  explicit GraphCopier(LocalGraph& local);

  LocalGraph to;
  std::map<ir::ValueId, ir::ValueId> map;

  void node(const ir::Node& node);
  void finish(const LocalGraph& from);

 private:
  const ir::Graph& from_;
};

LocalGraph extract(const ir::Graph& graph, const ir::Group& group);

// The values that roots of kernels depend on, down to the leaves. Results are cached until clear().
class Sources {
 public:
  Sources(const LocalGraph& local, std::function<bool(ir::ValueId)> is_input)
      : local_(local), is_input_(std::move(is_input)) {}

  // True if a root depends on `value`, which has more than one element.
  bool depends(ir::ValueId root, ir::ValueId value);
  // True if `other` and a root read a common value, so that one kernel reads it once, or if one is computed from the
  // other.
  bool related(const std::vector<ir::ValueId>& roots, ir::ValueId other);
  void clear() { known_.clear(); }

 private:
  // The values of more than one element that a root depends on, ascending. They may be most of a large group.
  const std::vector<ir::ValueId>& of(ir::ValueId root);

  const LocalGraph& local_;
  std::function<bool(ir::ValueId)> is_input_;
  std::map<ir::ValueId, std::vector<ir::ValueId>> known_;
};

// The cheapest values in which to hand on the result of `value`: the last values with its element count that
// elementwise and reshape nodes compute from it alone, before a broadcast or another reduction. Empty if a root is
// among them.
std::set<ir::ValueId> frontier(const ir::Graph& graph, const std::vector<std::vector<ir::NodeId>>& users,
                               ir::ValueId value, const std::set<ir::ValueId>& roots);

// Results of reductions that something in the graph reads.
std::vector<ir::ValueId> read_reductions(const ir::Graph& graph, const std::vector<std::vector<ir::NodeId>>& users);

// Replaces a reduction by one in about `parts` independent parts, whose result goes through a workspace, and one over
// them.
void split_reduction(LocalGraph& local, ir::ValueId value, int64_t parts);

// Replaces a reduction down columns by one that reads `rows` rows as one row, whose result goes through a workspace,
// and one over these partial results. If the reduced dimensions are not neighbours, it only marks the reduction as
// folded.
void fold_reduction(LocalGraph& local, ir::ValueId value, int64_t rows);

// Replaces a reduction of leading dimensions by one in `parts` parts, whose result goes through a workspace, and one
// over the parts. Part p takes every `parts`-th row from row p on, so that parts computed side by side read
// neighbouring rows. Returns the partial result; `moved` maps the other values to their replacements.
ir::ValueId split_rows(LocalGraph& local, ir::ValueId value, int64_t parts, std::map<ir::ValueId, ir::ValueId>& moved);

// A few words on what a kernel computes, without names of the model.
std::string title_of(const ir::Graph& graph, const KernelExprs& exprs,
                     const std::function<bool(ir::ValueId)>& is_input);

}  // namespace heddle::schedule
