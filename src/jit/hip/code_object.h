#pragma once

#include <string>

#include "jit/cubin.h"
#include "jit/cuda/nvrtc.h"

namespace heddle::jit {

// The compiler of kernels for AMD GPUs. It is hiprtc where that can be loaded: $HEDDLE_HIPRTC if set, else
// libhiprtc.so.7, .6 or .5, also in /opt/rocm/lib. Else it is clang with its AMDGPU target and lld, as a program:
// $HEDDLE_HIP_CLANG if set, else clang-19 or later on $PATH, else the clang of /opt/rocm/llvm/bin. If $HEDDLE_HIP_CLANG
// is set, it is used even where hiprtc is.
struct HipCompiler {
  std::string path;
  std::string version;    // what results depend on besides the unit and the options
  bool is_clang = false;  // a program; else hiprtc
};
// Throws kNoCompiler; the message lists what was tried.
HipCompiler find_hip_compiler();

// Compiles one unit (CUDA C++ that includes tile headers) to a code object of `architecture`
// (HipTarget::architecture()). The headers of tile/arch/hip replace those with instructions of NVIDIA GPUs. The cache,
// spilled registers, `slow` and the errors are as in compile_cubin(). Thread-safe.
CompiledCubin compile_code_object(const std::string& unit, const std::string& architecture, bool use_cache,
                                  Slow slow = Slow::kRefuse);

// Compiles a unit for any GPU: by compile_cubin() or compile_code_object(), according to the architecture.
CompiledCubin compile_for_gpu(const std::string& unit, const std::string& architecture, bool use_cache,
                              Slow slow = Slow::kRefuse);

}  // namespace heddle::jit
