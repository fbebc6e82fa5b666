#pragma once

#include <string>

#include "heddle/model.h"
#include "ir/graph.h"

namespace heddle::driver {

// Adds the inputs that CompileOptions::rows names, and selects the rows of its outputs. The pass select_early moves the
// selection in front of the products that compute the rows. Throws kInvalidInput if the graph has no such output, if
// the output has no rows, or if an input has the name or another shape already.
void select_rows(const std::string& path, const CompileOptions& options, ir::Graph& graph);

// Reduces the outputs that CompileOptions::appended names to the rows behind those of the input. Throws kInvalidInput
// if a name matches nothing, or if an output does not extend its input along one dimension.
void keep_appended(const std::string& path, const CompileOptions& options, ir::Graph& graph);

}  // namespace heddle::driver
