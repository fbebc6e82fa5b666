#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "ir/graph.h"
#include "schedule/expr/inline.h"
#include "schedule/expr/memory.h"

namespace heddle::schedule {

// A kernel's view of the graph around it.
struct KernelContext {
  const ir::Graph& graph;
  std::function<bool(ir::ValueId)> is_input;       // an earlier kernel computed the value, so this kernel loads it
  std::function<bool(ir::ValueId)> must_be_input;  // an earlier kernel must compute the value
  // For a reduction that is split into parts: the dimension of the parts. A root with more elements may also compute
  // the results of such a reduction, on any of the root's variables.
  std::function<std::optional<size_t>(ir::ValueId)> part_dim = {};
  // Allows a separate root for each part of a concatenation (or of a cast of one), if the parts are reductions or
  // depend on reductions. Parts with the same iteration space are then computed together.
  bool parts_apart = false;
  // The memory of a value that an earlier kernel computed or that this kernel stores.
  std::function<ValueMemory(ir::ValueId)> memory_of = {};
  bool scatters_rows = false;  // allows a node for which scatters_one_row() holds as a root
  // Allows a root that only moves rows of another value, in a kernel with other roots. The kernel computes the rows in
  // the order of that value, which the other roots may share, and stores them where they belong.
  bool moves_rows = false;
};

// The computation of a root: the value `part`, converted by `cast` if set. The result is stored at `first` along
// dimension `dim` of the root's value, or at the indices of `scatter` if set, or at the position to which `moves`
// (transposes and reshapes, in order) lead.
struct RootTarget {
  ir::ValueId value, part;
  size_t dim = 0;
  int64_t first = 0;
  const ir::Node* cast = nullptr;
  const ir::Node* scatter = nullptr;
  std::vector<const ir::Node*> moves = {};
};

// True for a transpose or reshape that keeps the last dimension and thus only moves rows.
bool moves_rows(const ir::Graph& graph, const ir::Node& node);

// True if a scatter may be a root that stores at the scatter's indices. The scatter must be in place. The scatter must
// have one update per column, so that updates do not collide. Elements that are neighbours in the updates must be
// neighbours in the result.
bool scatters_one_row(const KernelContext& context, const ir::Node& node);

// Returns the destination of the update at index `at` of a scatter for which scatters_one_row() holds. If the scatter
// drops updates outside the tensor, replaces `value` by a select that yields the old value for such updates. `load_old`
// loads the old value.
Index scatter_to(Inliner& inliner, ExprPool& pool, const ir::Graph& graph, const ir::Node& scatter,
                 const std::vector<Index>& at, const std::function<ExprId(const std::vector<Index>&)>& load_old,
                 ExprId& value);

// Returns one root for a value, or one root for each of its parts. `joined`: the kernel has other roots.
std::vector<RootTarget> targets_of(const KernelContext& context, ir::ValueId value, bool joined);
// The position in the memory of the root's value at which an element of `target.part` is stored. `at` is the element's
// index and `flat` its linear index.
Index place_in(IndexPool& indices, const KernelContext& context, const RootTarget& target, const std::vector<Index>& at,
               const Index& flat);

}  // namespace heddle::schedule
