#pragma once

#include <string>

#include "codegen/codegen.h"
#include "lang/ir/kernel.h"
#include "lang/program/program.h"

namespace heddle::lang::cpu {

// A kernel as C++ on the tile library. Each program of the grid is a task.
struct ProgramText {
  std::string text;  // a translation unit
  std::string symbol;
  int64_t scratch_bytes = 0;  // per thread
};

// Returns the text of a verified kernel, after rewriting `kernel` for a CPU. The text refers to ops by their indices in
// the rewritten kernel. Throws kUnsupportedOperator for ops that only a GPU supports.
ProgramText lower(Kernel& kernel);

// Returns the plan kernel that runs a launch of a program. The kernel's operands are those of memory_of(). Numeric
// arguments are literals in the text. Throws what lower() throws.
codegen::KernelSource lower_launch(Kernel kernel, const Launch& launch);

}  // namespace heddle::lang::cpu
