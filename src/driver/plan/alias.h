#pragma once

#include <cstddef>
#include <vector>

#include "driver/plan/plan_buffers.h"
#include "heddle/model.h"
#include "ir/graph.h"

namespace heddle::driver {

// Aliases outputs of an imported graph to the memory of inputs, as CompileOptions::alias and alias_updates request.
// Returns the positions of the outputs that are aliased only because of alias_updates. Throws kInvalidArgument, naming
// the option, if a name matches no input or output, if an input or output is named twice, and if types differ.
std::vector<size_t> set_aliases(const CompileOptions& options, ir::Graph& graph);

// Removes the alias of every output in `optional` that the optimised graph does not update in place.
void drop_copied_aliases(const std::vector<size_t>& optional, ir::Graph& graph);

// Makes a plan with aliases correct: every read of an aliased input must come before the step that overwrites the
// input. If that step, a later step or an output reads the input, inserts a copy of the old value before the step.
// Fills CompileReport::aliases.
void keep_old_values(BuiltPlan& built, PlanBuffers& buffers, CompileReport& report);

}  // namespace heddle::driver
