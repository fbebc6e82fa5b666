// CPU vectors: types and operators, conversions, lane operations, loads and stores. Kernels include this header instead
// of its parts; see tile/README.md.
#pragma once

#include "tile/arch/cpu/convert.h"
#include "tile/arch/cpu/lanes.h"
#include "tile/arch/cpu/memory.h"
#include "tile/arch/cpu/vec_types.h"
