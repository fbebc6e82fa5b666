#pragma once

#include <memory>
#include <string>

#include "ir/group.h"
#include "runtime/interpreter.h"

namespace heddle::driver {

// The text of a graph that computes one group: its parameters are group.inputs, its outputs group.outputs, in order.
std::string reference_text(const ir::Graph& graph, const ir::Group& group);

// Runs such texts with the reference evaluator, rounding each result to its type as a kernel would.
std::shared_ptr<const runtime::Interpreter> reference_interpreter();

}  // namespace heddle::driver
