// Selects the vector types of the machine that this unit is compiled for. Generated CUDA units define TILE_CUDA before
// this header.
#pragma once

#if defined(__CUDACC__) || defined(TILE_CUDA)
#include "tile/arch/cuda/vec.h"
#else
#include "tile/arch/cpu/vec.h"
#endif
