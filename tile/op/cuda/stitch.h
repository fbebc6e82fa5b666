// Includes everything that generated memory-bound CUDA kernels use. Include this header before any other tile header,
// or define TILE_CUDA before.
#pragma once

#if !defined(TILE_CUDA)
#define TILE_CUDA 1
#endif

#include "tile/op/arith.h"
#include "tile/op/cuda/loads.h"
#include "tile/op/cuda/math.h"
#include "tile/op/cuda/rounding.h"
#include "tile/op/cuda/team.h"
#include "tile/op/narrow.h"
