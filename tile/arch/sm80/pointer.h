// Pointers that are computed once.
#pragma once

namespace heddle::tile::sm80 {

// p, a pointer to global memory, of which the compiler does not know how it was computed: it stays in a register, and
// accesses behind it are so many bytes from it, where it would be computed again in front of each access under a
// condition. Without its type: NVVM refuses isspacep of a pointer to a structure.
template <typename T>
__device__ inline T* anchored(T* p) {
  const void* q = p;
  asm("" : "+l"(q));
  __builtin_assume(__isGlobal(q));
  return static_cast<T*>(const_cast<void*>(q));
}

}  // namespace heddle::tile::sm80
