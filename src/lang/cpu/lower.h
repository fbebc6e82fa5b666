#pragma once

#include <string>

#include "lang/ir/kernel.h"

namespace heddle::lang::cpu {

// A kernel as C++ on the tile library: a program of the grid is a task.
struct ProgramText {
  std::string text;  // a translation unit
  std::string symbol;
  int64_t scratch_bytes = 0;  // of a thread
};

// The text for a verified kernel. Throws kUnsupportedOperator for what only a GPU runs.
ProgramText lower(const Kernel& kernel);

}  // namespace heddle::lang::cpu
