#pragma once

#include <memory>
#include <string>

#include "ir/group.h"
#include "runtime/interpreter.h"

namespace heddle::driver {

// Returns the text of a graph that computes one group. The graph's parameters are group.inputs, and its outputs are
// group.outputs, both in order.
std::string reference_text(const ir::Graph& graph, const ir::Group& group);

// Returns an interpreter for the texts of reference_text(). The interpreter uses the reference evaluator and rounds
// each result to its type, as a kernel would.
std::shared_ptr<const runtime::Interpreter> reference_interpreter();

}  // namespace heddle::driver
