#pragma once

#include <optional>

#include "ir/graph.h"
#include "passes/pass.h"

namespace heddle::passes {

// Outputs that share the memory of an input (Graph::Port::alias) and are that input with some elements replaced become
// scatters `in_place`, whose kernels write what changes and leave the rest where it is. Beside scatters these are
//   select(position == where, new, input), where and new the same along a dimension: a static cache of keys;
//   concat(input[:k], new, input[k + n:]) along a dimension;
//   a scatter of slices between transposes: what index_copy_ and index_put_ are exported as.
// Other outputs stay as they are, and reach the input's memory by a copy at the end of the run.
ir::Graph update_in_place(const ir::Graph& graph, const PassContext& context);

// Whether an output is written to its input's memory by a scatter in place.
bool is_updated_in_place(const ir::Graph& graph, const ir::Graph::Port& output);

// The parameter of which `value` is a changed copy by the form of the nodes alone; kNoAlias: none. Of several, the one
// that comes first from the value.
int32_t input_behind(const ir::Graph& graph, ir::ValueId value);

}  // namespace heddle::passes
