#pragma once

#include "driver/model/compiled_group.h"
#include "ir/group.h"
#include "lang/program/program.h"
#include "target/target.h"

namespace heddle::driver {

// The kernels of a group of kind kTile: one for each launch of its program. Throws kInvalidIr for a program that does
// not fit the node or leaves one of its results unwritten, kUnsupportedOperator if the target cannot run it.
CompiledGroup compile_tile_group(const ir::Graph& graph, const ir::Group& group, const Target& target);

// Operands or results of a call, as its program sees them.
std::vector<lang::ProgramTensor> program_tensors(const ir::Graph& graph, const std::vector<ir::ValueId>& values);

// Makes the reference evaluator of this process able to evaluate tile programs.
void install_tile_evaluator();

}  // namespace heddle::driver
