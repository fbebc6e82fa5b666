// The functions of the C library, and replacements for builtins that GCC 12 has but GCC 10 and 11 lack.
#pragma once

#include "tile/arch/cpu/isa.h"
#include "tile/core/types.h"

#define TILE_MATH(name) __builtin_##name

#if defined(__has_builtin) && !__has_builtin(__builtin_shufflevector)
namespace heddle::tile::detail {

// Returns the lanes with indices I of the concatenation of a and b.
template <int... I, typename V>
TILE_INLINE auto shuffle_lanes(V a, V b) {
  using T = __typeof__(a[0]);
  constexpr int kLanes = sizeof(V) / sizeof(T);
  if constexpr (sizeof...(I) == kLanes) {
    typedef int_t<sizeof(T)> numbers __attribute__((vector_size(sizeof(V))));
    return __builtin_shuffle(a, b, numbers{I...});
  } else {
    typedef T result __attribute__((vector_size(sizeof...(I) * sizeof(T))));
    return result{(I < kLanes ? a : b)[I % kLanes]...};
  }
}

}  // namespace heddle::tile::detail
#define __builtin_shufflevector(a, b, ...) ::heddle::tile::detail::shuffle_lanes<__VA_ARGS__>(a, b)
#endif
