#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "jit/cuda/nvrtc.h"

namespace heddle::jit {

// "emulated_sm_90a", "emulated_sm_80": what src/emulator runs.
bool is_emulated(std::string_view architecture);

// The same unit as for NVRTC, made into a shared object by the host's compiler with the headers of tile/arch/emulated
// in place of those with instructions. Kernels are found in the text: they are declared `extern "C" __global__` at file
// scope, and the arguments of __launch_bounds__ and __cluster_dims__ mean the same at the end of the unit.
CompiledCubin compile_emulated(const std::string& unit, const std::string& architecture, bool use_cache);

// A kernel as its unit declares it. Exposed for tests.
struct DeclaredKernel {
  std::string name, launch_bounds, cluster_dims;  // the last two without parentheses; "" where not given
  bool operator==(const DeclaredKernel&) const = default;
};
std::vector<DeclaredKernel> find_kernels(std::string_view unit);

}  // namespace heddle::jit
