#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "lang/analysis/windows.h"
#include "lang/cuda/axis_facts.h"
#include "lang/ir/kernel.h"

// Finds loads that TMA can do. Such a load reads a window of a matrix that starts at a pointer parameter, and the sizes
// and strides of the matrix are parameters or constants. So the host can describe the matrix when it launches the
// kernel.
namespace heddle::lang::cuda {

// A matrix in memory. Its dimensions are inner, row and up to two batch dimensions.
struct TensorMapPlan {
  ValueId base = 0;                               // a pointer parameter
  int64_t element = 2;                            // bytes
  std::array<std::optional<Polynomial>, 2> size;  // of inner and row, as polynomials of parameters; none: unbounded
  std::vector<Polynomial> strides;                // of row and batch dimensions, in elements
  std::array<int64_t, 2> box{1, 1};
  bool operator==(const TensorMapPlan&) const = default;
};

struct BoxLoad {
  TensorMapPlan map;                // its box is not set, since that depends on the layout in shared memory
  size_t inner_dim = 0;             // the dimension of the tile that is the map's `inner`
  std::vector<Polynomial> corners;  // start of the window along inner, row and batch dimensions
};

// Returns nullopt if TMA cannot do this load, or if elements out of bounds would not be zero. If no view checks the
// first row or column, box_of() assumes that it is not negative, since a kernel may not read memory before a matrix.
std::optional<BoxLoad> box_of(const Kernel& kernel, const std::vector<AxisFacts>& facts, const WindowAnalysis& windows,
                              const Op& load);

}  // namespace heddle::lang::cuda
