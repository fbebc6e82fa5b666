#pragma once

#include <optional>

#include "ir/graph.h"
#include "passes/pass.h"

namespace heddle::passes {

// Rewrites outputs that share the memory of an input (Graph::Port::alias) and equal it but for some elements into
// scatters `in_place`, whose kernels write only the changed elements. Besides scatters, such outputs are
//   select(position == where, new, input), where and new the same along a dimension: a static cache of keys;
//   concat(input[:k], new, input[k + n:]) along a dimension;
//   a scatter of slices between transposes: what index_copy_ and index_put_ are exported as.
// Other outputs stay as they are and are copied to the input's memory at the end of the run.
ir::Graph update_in_place(const ir::Graph& graph, const PassContext& context);

// Whether a scatter in place writes an output to its input's memory.
bool is_updated_in_place(const ir::Graph& graph, const ir::Graph::Port& output);

// The index of the input of which `value` is a changed copy, judged by the nodes alone; kNoAlias: none. If there are
// several, the closest to `value`.
int32_t input_behind(const ir::Graph& graph, ir::ValueId value);

}  // namespace heddle::passes
