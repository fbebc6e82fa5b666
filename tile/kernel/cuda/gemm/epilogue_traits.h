// What the epilogue of a product may declare besides its call operator: a constant member, or nothing.
#pragma once

#include "tile/core/config.h"

namespace heddle::tile::cuda {

#define TILE_EPILOGUE_TRAIT(NAME, TYPE, MEMBER)             \
  template <typename Epilogue, typename = void>             \
  struct NAME {                                             \
    static constexpr TYPE value = 0;                        \
  };                                                        \
  template <typename Epilogue>                              \
  struct NAME<Epilogue, decltype(void(Epilogue::MEMBER))> { \
    static constexpr TYPE value = Epilogue::MEMBER;         \
  };

// It only returns values, for whole pairs of columns. Then it may be called for any element of D, and need not be
// called for elements outside.
TILE_EPILOGUE_TRAIT(ReturnsOnly, bool, kReturnsOnly)
// It reads matrices with the layout of D's rows: matrices(f, batch, row, col) calls f with the address of each, a
// multiple of 16 bytes. The size of their elements, if the kernel may pass the elements of the first matrix.
TILE_EPILOGUE_TRAIT(ReadsMatrices, bool, kReadsMatrices)
TILE_EPILOGUE_TRAIT(ResidualBytes, int, kResidualBytes)
// It reads vectors that are shared by all rows of D: vectors(f, batch, row, col).
TILE_EPILOGUE_TRAIT(ReadsVectors, bool, kReadsVectors)
// It first combines pairs of sums (kGemmGateColumns): gate(v, w, batch, row, col, n) replaces v[0..n), the first sums
// of the pairs, by the combination with their second sums w. row and col are those of D.
TILE_EPILOGUE_TRAIT(Gates, bool, kGates)
#undef TILE_EPILOGUE_TRAIT

// It reduces neighbours of the result (reduce_fragments.h), and may store nothing else.
template <typename Epilogue, typename = void>
struct Reduces {
  static constexpr bool value = false, stores = true;
};
template <typename Epilogue>
struct Reduces<Epilogue, decltype(void(Epilogue::kReduces))> {
  static constexpr bool value = true, stores = Epilogue::kStores;
};

// It is also available in steps, for f32 accumulators and 16-bit results. With kInitsAccumulator the accumulators begin
// with accumulator_init(v, batch, row, col, n), which is the same for all rows, instead of zero, or have it added. Then
// inner(v, batch, row, col, n) computes all but a last function, and pack<Out>(low, high) computes that function and
// rounds. kCostly: the steps compute more than a maximum.
template <typename Epilogue, typename = void>
struct InSteps {
  static constexpr bool value = false, inits = false, costly = false;
};
template <typename Epilogue>
struct InSteps<Epilogue, decltype(void(Epilogue::kInSteps))> {
  static constexpr bool value = true, inits = Epilogue::kInitsAccumulator, costly = Epilogue::kCostly;
};

}  // namespace heddle::tile::cuda
