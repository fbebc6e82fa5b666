#pragma once

#include <cstdint>

#include "driver/tune/group_bench.h"
#include "heddle/dtype.h"

namespace heddle::driver {

// A product of an m x k matrix with constant weights of few bits, [n][k], which have one scale for each block of
// neighbours along k.
struct PackedProblem {
  DType type = DType::kF16;  // of the matrix, the scales and the result
  int64_t m = 1, n = 1, k = 1;
  int64_t bits = 4, block = 32;
  bool zeros = false;  // each block has its own zero point
};

// The tuning problem for the kernels that read the weights in packed form.
GroupProblem packed_problem(const PackedProblem& problem);

}  // namespace heddle::driver
