#pragma once

#include <random>
#include <string>

#include "running.h"

namespace heddle::lang::testing {

// A random kernel of a seed with its arguments: elementwise chains, broadcasts, reductions, scans, shapes, masks,
// loops, branches and products, on odd extents. Equal seeds give equal kernels.
Case random_program(unsigned seed);

}  // namespace heddle::lang::testing
