#pragma once

#include <string>

#include "codegen/codegen.h"
#include "lang/ir/kernel.h"
#include "lang/program/program.h"

namespace heddle::lang::cpu {

// A kernel as C++ on the tile library: each program of the grid is a task.
struct ProgramText {
  std::string text;  // a translation unit
  std::string symbol;
  int64_t scratch_bytes = 0;  // per thread
};

// The text of a verified kernel. The kernel is first rewritten for a CPU; the text refers to ops by their numbers in
// the rewritten kernel. Throws kUnsupportedOperator for ops that only a GPU runs.
ProgramText lower(Kernel& kernel);

// A launch of a program as a kernel of a plan: its operands are those of memory_of(), and numbers are literals in its
// text. Throws what lower() throws.
codegen::KernelSource lower_launch(Kernel kernel, const Launch& launch);

}  // namespace heddle::lang::cpu
