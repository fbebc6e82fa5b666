#pragma once

#include <cstdint>
#include <string>

#include "codegen/codegen.h"
#include "lang/ir/kernel.h"
#include "lang/program/program.h"
#include "target/target.h"

namespace heddle::lang::cuda {

// A kernel as CUDA C++ on tile/block, and what its launch needs.
struct CudaUnit {
  std::string text, symbol;
  std::vector<std::string> includes;  // of the text
  std::string definitions;            // the text without them and without its alias of the library
  int64_t threads = 0;                // of a block
  int64_t shared_bytes = 0;           // dynamic
};

// The unit of a verified kernel. Throws kUnsupportedOperator at the place of an op that no GPU runs, kOutOfMemory where
// its tiles want more shared memory than a block has.
CudaUnit cuda_unit(Kernel kernel, const CudaTarget& target);

// A launch of a program as a kernel of a plan, whose operands are those of memory_of(). Throws what cuda_unit() throws,
// and kUnsupportedOperator for a grid that no launch has.
codegen::KernelSource cuda_launch(Kernel kernel, const Launch& launch, const CudaTarget& target);

}  // namespace heddle::lang::cuda
