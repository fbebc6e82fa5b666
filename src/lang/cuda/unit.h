#pragma once

#include <cstdint>
#include <string>

#include "lang/ir/kernel.h"
#include "target/target.h"

namespace heddle::lang::cuda {

// A kernel as CUDA C++ on tile/block, and what its launch needs.
struct CudaUnit {
  std::string text, symbol;
  int64_t threads = 0;       // of a block
  int64_t shared_bytes = 0;  // dynamic
};

// The unit of a verified kernel. Throws kUnsupportedOperator at the place of an op that no GPU runs, kOutOfMemory where
// its tiles want more shared memory than a block has.
CudaUnit cuda_unit(Kernel kernel, const CudaTarget& target);

}  // namespace heddle::lang::cuda
