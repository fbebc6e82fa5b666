// The functions of tile/arch/sm90/dependent.h for AMD GPUs, whose launches begin when the preceding launch has ended.
#pragma once

namespace heddle::tile::sm90 {

__device__ inline void launch_dependents() {}
__device__ inline void grid_dependency_wait() {}

// The compiler then loads through p at this point of the program. It still knows that p points to global memory.
template <typename T>
__device__ inline T* launder_after_wait(T* p) {
  auto q = (__attribute__((address_space(1))) T*)p;
  asm volatile("" : "+s"(q)::"memory");
  return (T*)q;
}

}  // namespace heddle::tile::sm90
