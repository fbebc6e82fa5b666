#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "ir/graph.h"
#include "schedule/expr/inline.h"
#include "schedule/expr/memory.h"

namespace heddle::schedule {

// The graph around a kernel, as the kernel sees it.
struct KernelContext {
  const ir::Graph& graph;
  std::function<bool(ir::ValueId)> is_input;       // an earlier kernel made it, so it is read
  std::function<bool(ir::ValueId)> must_be_input;  // an earlier kernel has to make it
  // For a reduction in parts: the dimension of the parts. Its results may lie on any variables of a larger root.
  std::function<std::optional<size_t>(ir::ValueId)> part_dim = {};
  // True if a concatenation (or a cast of one) may be one root for each of its parts when its parts are reductions or
  // depend on reductions. Parts over the same points are then made together.
  bool parts_apart = false;
  // The memory of a value that an earlier kernel made or this one stores.
  std::function<ValueMemory(ir::ValueId)> memory_of = {};
  bool scatters_rows = false;  // a node for which scatters_one_row() holds may be a root
};

// The computation of a root: the value `part`, cast by `cast` if set, placed at `first` along dimension `dim` of the
// root's value, or at the indices of `scatter`.
struct RootTarget {
  ir::ValueId value, part;
  size_t dim = 0;
  int64_t first = 0;
  const ir::Node* cast = nullptr;
  const ir::Node* scatter = nullptr;
};

// True if a scatter may be a root that is stored at its indices. It must be in place, have one update per column, so
// that no two updates collide, and keep neighbours together.
bool scatters_one_row(const KernelContext& context, const ir::Node& node);

// The destination of the update `at` of a scatter for which scatters_one_row() holds. If the update's row lies outside
// and must be left out, `value` becomes the old value, which `load_old` gives.
Index scatter_to(Inliner& inliner, ExprPool& pool, const ir::Graph& graph, const ir::Node& scatter,
                 const std::vector<Index>& at, const std::function<ExprId(const std::vector<Index>&)>& load_old,
                 ExprId& value);

// A value as one root, or as one root for each of its parts.
std::vector<RootTarget> targets_of(const KernelContext& context, ir::ValueId value);
// The position, in the memory of the root's value, of the `flat`-th element of the value that the root is computed
// from.
Index place_in(IndexPool& indices, const KernelContext& context, const RootTarget& target, const std::vector<Index>& at,
               const Index& flat);

}  // namespace heddle::schedule
