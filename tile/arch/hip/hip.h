// Included at the top of every unit that is compiled for an AMD GPU. The folder tile/arch/hip is searched for headers
// before tile, so its headers of tile/arch/sm80 and tile/arch/sm90 replace those for NVIDIA GPUs.
#pragma once

#include "tile/arch/hip/intrinsics.h"
#include "tile/arch/hip/keywords.h"
#include "tile/arch/hip/math.h"
