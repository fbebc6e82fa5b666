#pragma once

#include <random>
#include <string>

#include "running.h"

namespace heddle::lang::testing {

// A random kernel of a seed with its arguments: elementwise chains, broadcasts, reductions, scans, shapes, masks,
// loops, branches and products, on odd extents. Equal seeds give equal kernels.
Case random_program(unsigned seed);

// Indices, masks and powers that are made of themselves twice, over and over: a way that is followed once for each use
// never ends.
Case doubled_values();

}  // namespace heddle::lang::testing
