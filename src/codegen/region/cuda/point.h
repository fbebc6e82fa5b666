#pragma once

#include <string>

#include "schedule/region/cuda/stitch.h"

namespace heddle::codegen {

// Where a thread is in a sweep: the positions of its outer and inner walk as expressions, when they are valid ("":
// always), and the loops that they make up.
struct Point {
  std::string outer, inner, outer_valid, inner_valid;
  // The names of the steps of the outer and inner walk, and of the joint position in the outer one.
  const char *outer_step = "k0", *inner_step = "k1";
  std::string outer_position = "q0";
  size_t outer_first = 0, outer_last = 0, inner_first = 0, inner_last = 0;
  int team = 32;
};

Point point_of(const schedule::CudaStitchDesc& body, const schedule::ThreadLayout& layout, int team);

}  // namespace heddle::codegen
