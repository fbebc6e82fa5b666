// Programmatic dependent launch: a kernel begins while the previous one still runs. In other launches, neither
// instruction has an effect.
//
// The rule: in every block of a launch that may begin early, some thread waits, and no thread touches memory that any
// launch writes before it has waited itself or passed a barrier after a thread that did. All other launches begin when
// the previous one has ended. So when a kernel has ended, all kernels before it have ended, and memory is as if kernels
// ran one after another, for writes as well as for reads. Memory that no launch writes (weights, arguments) may be read
// earlier.
//
// An early kernel must not use ld.global.nc for memory that launches write, since that memory must stay constant while
// the kernel lives. Its blocks start before the previous kernel has written and share their L1 with older kernels that
// may have read the old contents, so ld.global.nc may find stale lines.
#pragma once

namespace heddle::tile::sm90 {

// Lets the next kernel begin as soon as every block of this one has called this or ended. The next kernel's blocks take
// the free room; by then, all blocks of this kernel have theirs.
__device__ inline void launch_dependents() {
  asm volatile("griddepcontrol.launch_dependents;");
}

// Waits until the previous kernel has ended and its writes are visible to every thread of the grid.
__device__ inline void grid_dependency_wait() {
  asm volatile("griddepcontrol.wait;" ::: "memory");
}

// Returns p and hides from the compiler that it is a parameter: loads through a restricted parameter become
// ld.global.nc. The asm gets it without its type, since NVVM refuses isspacep on a pointer to a structure.
template <typename T>
__device__ inline T* launder_after_wait(T* p) {
  const void* q = p;
  asm volatile("" : "+l"(q));
  __builtin_assume(__isGlobal(q));
  return static_cast<T*>(const_cast<void*>(q));
}

}  // namespace heddle::tile::sm90
