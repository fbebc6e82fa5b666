#pragma once

#include <optional>

#include "ir/graph.h"
#include "passes/pass.h"

namespace heddle::passes {

// Rewrites outputs that share the memory of an input (Graph::Port::alias) and differ from it in only some elements.
// Each becomes a scatter with the attribute `in_place`, whose kernel writes only the changed elements. Besides
// scatters, the pass recognises these outputs:
//   select(position == where, new, input), if `where` and `new` are constant along a dimension (a static key cache);
//   concat(input[:k], new, input[k + n:]) along a dimension;
//   a scatter of slices between transposes, the exported form of index_copy_ and index_put_.
// Other outputs are left unchanged. They are copied to the input's memory at the end of the run.
ir::Graph update_in_place(const ir::Graph& graph, const PassContext& context);

// True if a scatter in place writes `output` to the memory of its input.
bool is_updated_in_place(const ir::Graph& graph, const ir::Graph::Port& output);

// Returns the index of the input that `value` is a modified copy of, or kNoAlias. Only the ops on the path from input
// to value are examined. If there are several such inputs, returns the one that is fewest ops away from `value`.
int32_t input_behind(const ir::Graph& graph, ir::ValueId value);

}  // namespace heddle::passes
