#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "lang/analysis/windows.h"
#include "lang/cuda/axis_facts.h"
#include "lang/ir/kernel.h"

// Loads that TMA can make: windows of matrices that begin at a parameter and whose sizes and strides are parameters or
// known, so that the host describes the matrix when it launches the kernel.
namespace heddle::lang::cuda {

// A matrix in memory, (inner, row) and up to two dimensions of batches.
struct TensorMapPlan {
  ValueId base = 0;                               // a parameter
  int64_t element = 2;                            // bytes
  std::array<std::optional<Polynomial>, 2> size;  // of inner and row, in parameters; none: not bounded
  std::vector<Polynomial> strides;                // of row and of batches, in elements, in parameters
  std::array<int64_t, 2> box{1, 1};
  bool operator==(const TensorMapPlan&) const = default;
};

struct BoxLoad {
  TensorMapPlan map;                // its box is left to who knows how it lies in shared memory
  size_t inner_dim = 0;             // of the tile
  std::vector<Polynomial> corners;  // of inner, row and batches
};

// Nothing where TMA cannot make this load, or what it leaves out would not be zero. A first row or column is taken not
// to be negative where no view checks it: in front of a matrix lies nothing that a kernel may read.
std::optional<BoxLoad> box_of(const Kernel& kernel, const std::vector<AxisFacts>& facts, const WindowAnalysis& windows,
                              const Op& load);

}  // namespace heddle::lang::cuda
