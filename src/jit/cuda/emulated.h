#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "jit/cuda/nvrtc.h"

namespace heddle::jit {

// True for "emulated_sm_90a", "emulated_sm_80" and "emulated_gfx942", the architectures that src/emulator runs.
bool is_emulated(std::string_view architecture);

// Compiles a unit that was written for NVRTC or hiprtc into a shared object, with the host's compiler. The headers in
// tile/arch/emulated replace the headers that contain GPU instructions. Kernels are found by a search of the text, so
// they must be declared `extern "C" __global__` at file scope. The arguments of __launch_bounds__ and __cluster_dims__
// are also evaluated at the end of the unit, and must have the same meaning there.
CompiledCubin compile_emulated(const std::string& unit, const std::string& architecture, bool use_cache);

// The declaration of a kernel in a unit. Exposed for tests.
struct DeclaredKernel {
  std::string name, launch_bounds, cluster_dims;  // bounds and dims: without parentheses; "" if not given
  bool operator==(const DeclaredKernel&) const = default;
};
std::vector<DeclaredKernel> find_kernels(std::string_view unit);

}  // namespace heddle::jit
