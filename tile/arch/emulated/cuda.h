// Makes CUDA C++ compile with the host's compiler: defines the keywords and built-in names of device code as calls of
// the emulator. Included at the top of every unit that is compiled for an emulated GPU.
#pragma once

#include "tile/arch/emulated/intrinsics.h"
#include "tile/arch/emulated/keywords.h"
#include "tile/arch/emulated/math.h"
#include "tile/arch/emulated/sync.h"
#include "tile/arch/emulated/vector_types.h"
