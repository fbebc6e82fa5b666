#pragma once

#include "codegen/codegen.h"
#include "schedule/region/cuda/stitch.h"

namespace heddle::codegen {

struct Naming;  // codegen/naming.h

// Emits the kernel of a stitch group. `naming`, if given, provides the symbol and the names of the operands. With
// `marked`, the symbol is only a prefix of the kernel's final name. The text then has kStandIn in place of the symbol,
// and marks around numbers (numbers.h). Kernels that use the whole grid as one group of blocks cannot be `marked`.
KernelSource emit_cuda_stitch(const schedule::KernelPlan& plan, const schedule::CudaStitchDesc& body,
                              bool marked = false, const Naming* naming = nullptr);

// The first lines of a kernel that waits for the previous launch. kWaitHeader declares the functions that they call.
inline constexpr const char* kBeginEarly = "tile::sm90::launch_dependents();\n  tile::sm90::grid_dependency_wait();";

// The code of a kernel as a device function, which other kernels call. Each call runs one block of the kernel, in a
// block of `threads` threads of the other kernel; threads that it does not need return at once. The parameters are
// (operands..., shared memory, block, blocks). If the code is marked, the array of arguments follows the operands.
struct CudaPart {
  std::string parameters, body;
  std::vector<std::string> types;  // of the operands, such as "const float*"
  std::vector<std::string> includes;
};
CudaPart emit_cuda_part(const schedule::KernelDesc& desc, const schedule::CudaStitchDesc& body, int threads,
                        bool marked);

}  // namespace heddle::codegen
