// Pointers that are computed once.
#pragma once

namespace heddle::tile::sm80 {

// Returns p, a pointer to global memory, and hides its computation from the compiler. It then stays in a register, and
// accesses use constant byte offsets from it; otherwise it would be computed again before each conditional access. The
// asm gets it without its type, since NVVM refuses isspacep on a pointer to a structure.
template <typename T>
__device__ inline T* anchored(T* p) {
  const void* q = p;
  asm("" : "+l"(q));
  __builtin_assume(__isGlobal(q));
  return static_cast<T*>(const_cast<void*>(q));
}

}  // namespace heddle::tile::sm80
