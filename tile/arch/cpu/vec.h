// Vectors: types and operators, conversions, lane operations, memory. Kernels include this header; see tile/README.md.
#pragma once

#include "tile/arch/cpu/convert.h"
#include "tile/arch/cpu/lanes.h"
#include "tile/arch/cpu/memory.h"
#include "tile/arch/cpu/vec_types.h"
