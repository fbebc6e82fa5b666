#pragma once

#include <string>
#include <vector>

#include "heddle/model.h"
#include "ir/graph.h"
#include "runtime/plan.h"

namespace heddle::driver {

// Returns the inputs of a plan or of an imported graph.
std::vector<PortInfo> inputs_of(const runtime::Plan& plan);
std::vector<PortInfo> inputs_of(const ir::Graph& graph);

// Returns a line about the guessed extents of `inputs`: "batch = 1, width = 320 (guessed; --shape x=1,3,48,320 sets
// them)". load() guesses the extents that neither the model nor the options specify. Returns "" if no extent was
// guessed, and for textual IR and plan files.
std::string guess_of(const std::string& path, const CompileOptions& options, const std::vector<PortInfo>& inputs);

}  // namespace heddle::driver
