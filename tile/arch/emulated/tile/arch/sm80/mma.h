// The emulator's replacement for tile/arch/sm80/mma.h.
#pragma once

#include "tile/arch/emulated/element.h"

namespace heddle::tile::sm80 {

template <typename A, typename B = A>
struct Mma {
  using Acc = emulated_sum<A>;
  static constexpr int kK = 32 / sizeof(A);
  static_assert(emulated_element<A> == emulated_element<B> ||
                    (sizeof(A) == 1 && sizeof(B) == 1 && is_same<Acc, int32_t>),
                "the instruction does not exist");
  static_assert(__CUDA_ARCH__ >= 890 || (!is_same<A, cuda::e4m3> && !is_same<A, cuda::e5m2>), "from sm_89 on");
  static void issue(Acc (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2], HEDDLE_PLACE) {
    heddle_emulated_api->mma({emulated_element<A>, emulated_element<B>, d, a, b}, place);
  }
};

}  // namespace heddle::tile::sm80
