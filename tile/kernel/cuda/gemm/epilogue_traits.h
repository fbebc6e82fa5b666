// The optional declarations of a product's epilogue, besides its call operator. A declaration is a constant member. A
// trait is 0 if the epilogue does not have the member.
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

// True if the epilogue only returns values, and handles whole pairs of columns. Such an epilogue may be called for any
// element of D, any number of times. It need not be called for accumulators outside of D.
TILE_EPILOGUE_TRAIT(ReturnsOnly, bool, kReturnsOnly)
// ReadsMatrices: true if the epilogue reads matrices whose rows have the layout of D's rows. Its member matrices(f,
// batch, row, col) calls f with the address of each matrix at this position, which is a multiple of 16 bytes.
// ResidualBytes: the element size of the first matrix, if the kernel may pass this matrix's elements to the epilogue.
TILE_EPILOGUE_TRAIT(ReadsMatrices, bool, kReadsMatrices)
TILE_EPILOGUE_TRAIT(ResidualBytes, int, kResidualBytes)
// True if the epilogue reads vectors that are shared by all rows of D: vectors(f, batch, row, col).
TILE_EPILOGUE_TRAIT(ReadsVectors, bool, kReadsVectors)
// True if the epilogue first combines pairs of accumulators (kGemmGateColumns). Its member gate(v, w, batch, row, col,
// n) replaces the first accumulators of the pairs, v[0..n), by their combinations with the second accumulators w. row
// and col are positions in D.
TILE_EPILOGUE_TRAIT(Gates, bool, kGates)
#undef TILE_EPILOGUE_TRAIT

// Declares that the epilogue reduces neighbours of the result (reduce_fragments.h). `stores`: true if it also stores
// the result itself.
template <typename Epilogue, typename = void>
struct Reduces {
  static constexpr bool value = false, stores = true;
};
template <typename Epilogue>
struct Reduces<Epilogue, decltype(void(Epilogue::kReduces))> {
  static constexpr bool value = true, stores = Epilogue::kStores;
};

// Declares that the epilogue is also available in steps, for f32 accumulators and 16-bit results. First, if `inits`
// (kInitsAccumulator), the kernel adds to the accumulators the value of accumulator_init(v, batch, row, col, n), which
// is equal for all rows; accumulators may start with this value. Then inner(v, batch, row, col, n) computes everything
// except a final function, and pack<Out>(low, high) computes this function and rounds. `costly` (kCostly): the steps
// compute more than a maximum.
template <typename Epilogue, typename = void>
struct InSteps {
  static constexpr bool value = false, inits = false, costly = false;
};
template <typename Epilogue>
struct InSteps<Epilogue, decltype(void(Epilogue::kInSteps))> {
  static constexpr bool value = true, inits = Epilogue::kInitsAccumulator, costly = Epilogue::kCostly;
};

}  // namespace heddle::tile::cuda
