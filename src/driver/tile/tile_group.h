#pragma once

#include "driver/model/compiled_group.h"
#include "ir/group.h"
#include "lang/program/program.h"
#include "target/target.h"

namespace heddle::driver {

// Compiles the kernels of a group of kind kTile: one kernel for each launch of the tile program. Throws kInvalidIr if
// the program does not match the node or leaves a result unwritten. Throws kUnsupportedOperator if the target cannot
// run the program.
CompiledGroup compile_tile_group(const ir::Graph& graph, const ir::Group& group, const Target& target);

// Describes the operands or results of a call as arguments of its program.
std::vector<lang::ProgramTensor> program_tensors(const ir::Graph& graph, const std::vector<ir::ValueId>& values);

// Registers the evaluator of tile programs with this process's reference evaluator.
void install_tile_evaluator();

}  // namespace heddle::driver
