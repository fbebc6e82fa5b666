#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "jit/cuda/nvrtc.h"

namespace heddle::jit {

// True for "emulated_sm_90a" and "emulated_sm_80", the architectures of src/emulator.
bool is_emulated(std::string_view architecture);

// Compiles a unit for NVRTC into a shared object with the host's compiler. The headers of tile/arch/emulated replace
// those with instructions. Kernels are found by searching the text: they must be declared `extern "C" __global__` at
// file scope. The arguments of __launch_bounds__ and __cluster_dims__ must have the same meaning at the end of the
// unit.
CompiledCubin compile_emulated(const std::string& unit, const std::string& architecture, bool use_cache);

// A kernel as its unit declares it. Exposed for tests.
struct DeclaredKernel {
  std::string name, launch_bounds, cluster_dims;  // the last two without parentheses; "" where not given
  bool operator==(const DeclaredKernel&) const = default;
};
std::vector<DeclaredKernel> find_kernels(std::string_view unit);

}  // namespace heddle::jit
