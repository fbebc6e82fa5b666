#pragma once

#include <string>

#include "codegen/names.h"

namespace heddle::codegen {

// A thread's position in its iteration over a stage's elements. The iteration is a nest of an outer and an inner loop.
// For each of these two loops, holds the position as an expression, the condition under which the position is valid
// ("": always), and the range [first, last) of the stage's loops over which it iterates.
struct Point {
  std::string outer, inner, outer_valid, inner_valid;
  // The names of the step counters of the outer and inner loop, and the name or expression of the position in the outer
  // loop.
  const char *outer_step = "k0", *inner_step = "k1";
  std::string outer_position = "q0";
  size_t outer_first = 0, outer_last = 0, inner_first = 0, inner_last = 0;
  int team = 32;
};

Point point_of(const schedule::CudaStitchDesc& body, const schedule::ThreadLayout& layout, int team);

}  // namespace heddle::codegen
