// The functions of one number that the C library and CUDA's device library name alike. A row gives a function to kernels
// for both targets and to the emulator.
#pragma once

// Functions with a vector form for float (tile/op/math.h).
#define TILE_ELEMENTARY_VECTORS(F) F(cos) F(erf) F(erfc) F(exp) F(exp2) F(expm1) F(log) F(log1p) F(log2) F(sin) F(tanh)
// Functions that a CPU computes lane by lane, since models rarely use them.
#define TILE_ELEMENTARY_LANES(F) \
  F(acos) F(acosh) F(asin) F(asinh) F(atan) F(atanh) F(cbrt) F(cosh) F(log10) F(sinh) F(tan)
#define TILE_ELEMENTARY(F) TILE_ELEMENTARY_VECTORS(F) TILE_ELEMENTARY_LANES(F)
