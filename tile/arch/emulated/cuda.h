// CUDA C++ for the host's compiler: the keywords and built-in names that device code uses, in terms of the emulator.
// Included before every unit that is compiled for an emulated GPU.
#pragma once

#include "tile/arch/emulated/intrinsics.h"
#include "tile/arch/emulated/keywords.h"
#include "tile/arch/emulated/math.h"
#include "tile/arch/emulated/sync.h"
#include "tile/arch/emulated/vector_types.h"
