// Makes the compiler compute a pointer once and keep it in a register.
#pragma once

namespace heddle::tile::sm80 {

// Returns p, a pointer to global memory, and hides from the compiler how p was computed. The pointer then stays in a
// register, and accesses use constant byte offsets from it. Otherwise, the compiler would compute the pointer again
// before each conditional access. The asm statement uses a const void*, since NVVM rejects isspacep on a pointer to a
// structure.
template <typename T>
__device__ inline T* anchored(T* p) {
  const void* q = p;
  asm("" : "+l"(q));
  __builtin_assume(__isGlobal(q));
  return static_cast<T*>(const_cast<void*>(q));
}

}  // namespace heddle::tile::sm80
