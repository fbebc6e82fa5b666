#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "ir/graph.h"
#include "schedule/expr/inline.h"
#include "schedule/expr/memory.h"

namespace heddle::schedule {

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
  // The memory of a value that is made before or stored.
  std::function<ValueMemory(ir::ValueId)> memory_of = {};
  bool scatters_rows = false;  // whether a node for which scatters_one_row() holds may be a root
};

// What a root is computed of: a value, cast by `cast` if there is one, at `first` along dimension `dim` of the root's,
// or where the indices of `scatter` say.
struct RootTarget {
  ir::ValueId value, part;
  size_t dim = 0;
  int64_t first = 0;
  const ir::Node* cast = nullptr;
  const ir::Node* scatter = nullptr;
};

// Whether a node is a scatter that may be a root like others, stored where its indices say: one in place, with one
// update a column, so that no two meet, and whose neighbours stay neighbours.
bool scatters_one_row(const KernelContext& context, const ir::Node& node);

// Where the update `at` goes, of a scatter for which that holds. Its value becomes the old one, which `load_old` gives,
// where its row lies outside and is to be left out.
Index scatter_to(Inliner& inliner, ExprPool& pool, const ir::Graph& graph, const ir::Node& scatter,
                 const std::vector<Index>& at, const std::function<ExprId(const std::vector<Index>&)>& load_old,
                 ExprId& value);

// A value as one root, or as a root for each of its parts.
std::vector<RootTarget> targets_of(const KernelContext& context, ir::ValueId value);
// The position in the memory of the root's value of an element of what it is computed of, the `flat`-th.
Index place_in(IndexPool& indices, const KernelContext& context, const RootTarget& target, const std::vector<Index>& at,
               const Index& flat);

}  // namespace heddle::schedule
