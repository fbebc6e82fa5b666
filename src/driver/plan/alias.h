#pragma once

#include <cstddef>
#include <vector>

#include "driver/plan/plan_buffers.h"
#include "heddle/model.h"
#include "ir/graph.h"

namespace heddle::driver {

// Gives the outputs of an imported graph the memory of the inputs that CompileOptions::alias and alias_updates name.
// Returns the positions of those that only alias_updates names. Throws kInvalidArgument, naming the option, for a name
// that matches nothing, an input or output that is named twice, and types that differ.
std::vector<size_t> set_aliases(const CompileOptions& options, ir::Graph& graph);

// Removes the aliases of the outputs `optional` of an optimised graph that are not updates in place.
void drop_copied_aliases(const std::vector<size_t>& optional, ir::Graph& graph);

// A plan with aliases is correct only if all reads of an input come before the step that writes to its memory. For
// reads in that step or later, outputs included, this copies the old value before that step. Fills
// CompileReport::aliases.
void keep_old_values(BuiltPlan& built, PlanBuffers& buffers, CompileReport& report);

}  // namespace heddle::driver
