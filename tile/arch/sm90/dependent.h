// Programmatic dependent launch: kernels that begin while the one in front of them still runs. Without such a launch
// neither instruction does anything.
//
// The rule: in every block of a launch that may begin early some thread waits, and no thread touches memory that any
// launch writes before it has waited or passed a barrier behind a thread that did. Other launches begin when the one in
// front has ended. Then a kernel that has ended implies that all kernels before it have,
// so memory is as it would be if kernels ran one after another, for writes as well as for reads. What no launch writes
// (weights, arguments) may be read before.
//
// An early kernel reads nothing that launches write by ld.global.nc, which is for memory that stays as it is while the
// kernel lives: its blocks are there before the kernel in front has written, and share their L1 with kernels in front
// of that one, which may have read what lay there before: ld.global.nc may find their lines.
#pragma once

namespace heddle::tile::sm90 {

// The next kernel may begin, as soon as every block of this one has said so or ended. Its blocks take the room that is
// left; all of this one's have theirs by then.
__device__ inline void launch_dependents() {
  asm volatile("griddepcontrol.launch_dependents;");
}

// Until the kernel in front has ended and what it wrote can be seen by every thread of the grid.
__device__ inline void grid_dependency_wait() {
  asm volatile("griddepcontrol.wait;" ::: "memory");
}

// p, of which the compiler does not know that it is a parameter: through a restricted one it loads by ld.global.nc.
// Without its type: NVVM refuses isspacep of a pointer to a structure.
template <typename T>
__device__ inline T* launder_after_wait(T* p) {
  const void* q = p;
  asm volatile("" : "+l"(q));
  __builtin_assume(__isGlobal(q));
  return static_cast<T*>(const_cast<void*>(q));
}

}  // namespace heddle::tile::sm90
