#pragma once

#include <optional>
#include <vector>

#include "lang/ir/kernel.h"

// Known facts about the values in tiles, by dimension: runs of consecutive or equal values, and divisibility.
namespace heddle::lang::cuda {

struct AxisFacts {
  // Facts along each dimension; a scalar has one dimension.
  //   contiguous  length of runs in which each element is the previous one plus 1 (pointers: plus one element)
  //   divisor     a divisor of the first element of each run (pointers: in bytes)
  //   constant    length of runs of equal elements
  std::vector<int64_t> contiguous, divisor, constant;
  std::optional<int64_t> value;  // value of all elements, if known

  static AxisFacts unknown(size_t rank) {
    return {std::vector<int64_t>(rank, 1), std::vector<int64_t>(rank, 1), std::vector<int64_t>(rank, 1), {}};
  }
};

// Returns the facts of each value of the kernel. The facts of a parameter come from its attribute `divisible`.
std::vector<AxisFacts> axis_facts(const Kernel& kernel);

}  // namespace heddle::lang::cuda
