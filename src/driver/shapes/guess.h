#pragma once

#include <string>
#include <vector>

#include "heddle/model.h"
#include "ir/graph.h"
#include "runtime/plan.h"

namespace heddle::driver {

// The inputs of a plan or of an imported graph.
std::vector<PortInfo> inputs_of(const runtime::Plan& plan);
std::vector<PortInfo> inputs_of(const ir::Graph& graph);

// The values that load() chose for extents of these inputs that neither the model nor the options fix, in one line:
// "batch = 1, width = 320 (guessed; --shape x=1,3,48,320 sets them)". "" if there are none, and for textual IR and plan
// files.
std::string guess_of(const std::string& path, const CompileOptions& options, const std::vector<PortInfo>& inputs);

}  // namespace heddle::driver
