#pragma once

#include <string>

#include "codegen/codegen.h"
#include "lang/ir/kernel.h"
#include "lang/program/program.h"

namespace heddle::lang::cpu {

// A kernel as C++ on the tile library: a program of the grid is a task.
struct ProgramText {
  std::string text;  // a translation unit
  std::string symbol;
  int64_t scratch_bytes = 0;  // of a thread
};

// The text for a verified kernel, which is rewritten for a CPU first: the text names its ops by their numbers in what it
// becomes. Throws kUnsupportedOperator for what only a GPU runs.
ProgramText lower(Kernel& kernel);

// A launch of a program as a kernel of a plan: its operands are those of memory_of(), numbers are
// literals. Throws what lower() throws.
codegen::KernelSource lower_launch(Kernel kernel, const Launch& launch);

}  // namespace heddle::lang::cpu
