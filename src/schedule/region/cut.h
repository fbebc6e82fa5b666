#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "schedule/region/exprs/kernel_exprs.h"

namespace heddle::schedule {

// A copy of a group as a separate graph, which the scheduler may rewrite. Inputs of the group become parameters. A
// constant whose elements are all equal stays a constant, which becomes a literal in the kernel's text.
struct LocalGraph {
  ir::Graph graph;
  std::map<ir::ValueId, ir::ValueId> outer;  // maps parameters and outputs to values of the whole graph
  std::set<ir::ValueId> forced;              // values that are passed through a workspace
  std::set<ir::ValueId> whole;               // reductions that must not be split (again)
  std::set<ir::ValueId> folded;              // reductions whose rows are already joined
  std::map<ir::ValueId, size_t> part_dim;    // for a reduction in parts: the dimension of the parts
  // Pairs of forced values that one kernel computes together. The first value is computed from the second.
  std::set<std::pair<ir::ValueId, ir::ValueId>> paired;
};

using ValueMap = std::map<ir::ValueId, ir::ValueId>;  // from the values of an old graph to those of a new graph

// Copies a graph. To replace a node, the caller emits other nodes into `to`.
class GraphCopier {
 public:
  explicit GraphCopier(LocalGraph& local);

  LocalGraph to;
  ValueMap map;

  void node(const ir::Node& node);
  void finish(const LocalGraph& from);

 private:
  const ir::Graph& from_;
};

LocalGraph extract(const ir::Graph& graph, const ir::Group& group);

// Finds the values that the root values of kernels are computed from, up to the inputs. Results are cached until
// clear().
class Sources {
 public:
  Sources(const LocalGraph& local, std::function<bool(ir::ValueId)> is_input)
      : local_(local), is_input_(std::move(is_input)) {}

  // True if `root` is computed from `value`. Always false if `value` has only one element.
  bool depends(ir::ValueId root, ir::ValueId value);
  // True if `other` and one of `roots` are both computed from some value that a single kernel would read only once, or
  // if one of them is computed from the other.
  bool related(const std::vector<ir::ValueId>& roots, ir::ValueId other);
  // The values that both are computed from, in ascending order.
  std::vector<ir::ValueId> shared(ir::ValueId a, ir::ValueId b);
  void clear() { known_.clear(); }

 private:
  // The values with more than one element that a root is computed from, in ascending order. In a large group, this
  // may be most values.
  const std::vector<ir::ValueId>& of(ir::ValueId root);

  const LocalGraph& local_;
  std::function<bool(ir::ValueId)> is_input_;
  std::map<ir::ValueId, std::vector<ir::ValueId>> known_;
};

// Returns the cheapest values to store in place of `value`, for use by later kernels. Starting at `value`, the function
// follows elementwise and reshape nodes whose results have as many elements as `value`. It does not follow a node that
// also depends on `value` through another kind of node, such as a broadcast or a reduction. Returns the values on these
// paths (including `value`) that a node outside the paths uses. Returns an empty set if any value on the paths is in
// `roots`.
std::set<ir::ValueId> frontier(const ir::Graph& graph, const std::vector<std::vector<ir::NodeId>>& users,
                               ir::ValueId value, const std::set<ir::ValueId>& roots);

// Returns the results of reductions that some node of the graph uses.
std::vector<ir::ValueId> read_reductions(const ir::Graph& graph, const std::vector<std::vector<ir::NodeId>>& users);

// Replaces a reduction by two: a reduction in about `parts` independent parts, whose result goes through a workspace,
// and a reduction over the parts. Returns the new values.
ValueMap split_reduction(LocalGraph& local, ir::ValueId value, int64_t parts);

// Replaces a reduction along columns by two. The first treats every `rows` consecutive rows as one row; its result goes
// through a workspace. The second reduces the partial results of the first. If the reduced dimensions are not adjacent,
// only marks the reduction as folded. Returns the new values.
ValueMap fold_reduction(LocalGraph& local, ir::ValueId value, int64_t rows);

// A transpose or reshape that moves rows. `to`: the permutation, or the shape.
struct RowMove {
  ir::Op op;
  ir::Ints to;
};

// Replaces a reduction of leading dimensions by two: a reduction in `parts` parts, whose result goes through a
// workspace, and a reduction over the parts. Part p has row p and every `parts`-th row after it, so that parts computed
// concurrently read adjacent rows; rows are counted after `moves`. If `parts` does not divide the rows, later parts
// have one row fewer, and the identity of the reduction takes its place. Returns the result of the first reduction.
// `moved` maps the values of the old graph to those of the new graph.
ir::ValueId split_rows(LocalGraph& local, ir::ValueId value, int64_t parts, const std::vector<RowMove>& moves,
                       ValueMap& moved);

// Returns a short description of what a kernel computes. It contains no names from the model.
std::string title_of(const ir::Graph& graph, const KernelExprs& exprs,
                     const std::function<bool(ir::ValueId)>& is_input);

}  // namespace heddle::schedule
