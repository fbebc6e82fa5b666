#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "lang/analysis/windows.h"
#include "lang/cuda/axis_facts.h"
#include "lang/ir/kernel.h"

// Loads that TMA can make: windows of matrices that start at a parameter and whose sizes and strides are parameters or
// constants. The host can then describe the matrix when it launches the kernel.
namespace heddle::lang::cuda {

// A matrix in memory: dimensions inner and row, and up to two batch dimensions.
struct TensorMapPlan {
  ValueId base = 0;                               // a parameter
  int64_t element = 2;                            // bytes
  std::array<std::optional<Polynomial>, 2> size;  // of inner and row, in terms of parameters; none: unbounded
  std::vector<Polynomial> strides;                // of row and batches, in elements, in terms of parameters
  std::array<int64_t, 2> box{1, 1};
  bool operator==(const TensorMapPlan&) const = default;
};

struct BoxLoad {
  TensorMapPlan map;                // without its box, which depends on the layout in shared memory
  size_t inner_dim = 0;             // the tile's dimension that is `inner`
  std::vector<Polynomial> corners;  // of inner, row and batches
};

// Nothing if TMA cannot make this load, or if elements out of bounds would not be zero. A first row or column that no
// view checks is assumed not to be negative: a kernel may read nothing in front of a matrix.
std::optional<BoxLoad> box_of(const Kernel& kernel, const std::vector<AxisFacts>& facts, const WindowAnalysis& windows,
                              const Op& load);

}  // namespace heddle::lang::cuda
