#pragma once

#include <string>

#include "codegen/names.h"

namespace heddle::codegen {

// A thread's position in a sweep: the positions of its outer and inner walk as expressions, the conditions for their
// validity ("": always), and the loops that each walk covers.
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
