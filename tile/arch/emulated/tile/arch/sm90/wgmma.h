// Emulated versions of the functions of tile/arch/sm90/wgmma.h. The emulator writes the sums of a product at an
// arbitrary time before the wait for the product returns.
#pragma once

#include "tile/arch/emulated/element.h"
#include "tile/arch/sm90/descriptor.h"

namespace heddle::tile::sm90 {

inline void wgmma_fence(HEDDLE_PLACE) {
  heddle_emulated_api->wgmma_fence(place);
}
inline void wgmma_commit(HEDDLE_PLACE) {
  heddle_emulated_api->wgmma_commit(place);
}
template <int Pending>
inline void wgmma_wait(HEDDLE_PLACE) {
  heddle_emulated_api->wgmma_wait(Pending, place);
}
inline void fence_operand(float&) {}
inline void fence_operand(int32_t&) {}
inline void fence_operand(uint32_t&) {}

template <typename In, int N>
struct Wgmma {
  using Acc = accumulator_t<In>;
  static_assert(N % 8 == 0 && N >= 8 && N <= 256);
  static_assert(!is_same<Acc, int32_t> || N <= 32 || N % 16 == 0, "the integer instruction has fewer widths");
  template <bool MnA, bool MnB>
  static void issue(Acc (&d)[N / 2], uint64_t a, uint64_t b, int accumulate, HEDDLE_PLACE) {
    static_assert(sizeof(In) == 2 || (!MnA && !MnB), "the tensor cores read this type along k only");
    heddle_emulated_api->wgmma({emulated_element<In>, N, d, a, b, MnA, MnB, accumulate != 0, nullptr}, place);
  }
};

}  // namespace heddle::tile::sm90
