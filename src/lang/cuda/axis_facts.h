#pragma once

#include <optional>
#include <vector>

#include "lang/ir/kernel.h"

// What is known of the numbers in tiles, dimension by dimension: which are neighbours, multiples, the same.
namespace heddle::lang::cuda {

struct AxisFacts {
  // Along each dimension, elements come in groups of so many that follow each other (by 1; pointers by one element),
  // the first of which is a multiple of `divisor` (pointers: in bytes); and in groups of equal ones. A scalar has one
  // dimension.
  std::vector<int64_t> contiguous, divisor, constant;
  std::optional<int64_t> value;  // of all elements

  static AxisFacts unknown(size_t rank) {
    return {std::vector<int64_t>(rank, 1), std::vector<int64_t>(rank, 1), std::vector<int64_t>(rank, 1), {}};
  }
};

// Of each value of the kernel, parameters by their attribute `divisible`.
std::vector<AxisFacts> axis_facts(const Kernel& kernel);

}  // namespace heddle::lang::cuda
