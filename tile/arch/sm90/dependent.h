// Programmatic dependent launch: a kernel begins while the previous kernel still runs. In launches without this
// attribute, the two instructions griddepcontrol.launch_dependents and griddepcontrol.wait have no effect. Devices
// before sm_90 have neither launches of this kind nor the instructions.
//
// The rule for a launch that may begin early: in every block, some thread calls grid_dependency_wait(). A thread may
// access memory that a launch writes only after it has called grid_dependency_wait() itself, or has passed a barrier
// after a thread that called it. All other launches begin after the previous launch has ended. So when a kernel has
// ended, all kernels before it have ended, too. Reads and writes then have the same effect as if kernels ran one after
// another. Memory that no launch writes (weights, arguments) may be read earlier.
//
// An early kernel must not use ld.global.nc for memory that any launch writes (load_weights_if() is for memory that
// none writes), since ld.global.nc requires memory to be constant while the kernel runs. The early kernel's blocks
// start before the previous kernel has written its results. These blocks share an L1 with older kernels that may have
// read the old contents, so ld.global.nc may return stale lines.
#pragma once

namespace heddle::tile::sm90 {

// Lets the next kernel begin when every block of this kernel has called this function or ended. The blocks of the next
// kernel only use resources that are free; all blocks of this kernel have started by then.
__device__ inline void launch_dependents() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
#endif
}

// Waits until the previous kernel has ended and its writes are visible to every thread of the grid.
__device__ inline void grid_dependency_wait() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// Returns p, but hides from the compiler that p is a kernel parameter. The compiler turns loads through a restricted
// parameter into ld.global.nc. The asm receives p as a void pointer, since NVVM rejects isspacep on a pointer to a
// structure.
template <typename T>
__device__ inline T* launder_after_wait(T* p) {
  const void* q = p;
  asm volatile("" : "+l"(q));
  __builtin_assume(__isGlobal(q));
  return static_cast<T*>(const_cast<void*>(q));
}

}  // namespace heddle::tile::sm90
