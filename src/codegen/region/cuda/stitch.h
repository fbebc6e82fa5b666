#pragma once

#include "codegen/codegen.h"
#include "schedule/region/cuda/stitch.h"

namespace heddle::codegen {

struct Naming;  // codegen/naming.h

// With `marked`, the symbol is only a prefix, which launches lack. The text then has kStandIn in place of the symbol
// and marks around numbers (numbers.h). Not for kernels of the whole grid.
KernelSource emit_cuda_stitch(const schedule::KernelPlan& plan, const schedule::CudaStitchDesc& body,
                              bool marked = false, const Naming* naming = nullptr);

// The first lines of a kernel that waits for the previous launch; their functions are in kWaitHeader.
inline constexpr const char* kBeginEarly = "tile::sm90::launch_dependents();\n  tile::sm90::grid_dependency_wait();";

// A kernel as a function that other kernels call for one of its blocks: (operands..., block, blocks). If it is marked,
// the array of arguments follows the operands.
struct CudaPart {
  std::string parameters, body;
  std::vector<std::string> types;  // of the operands, "const float*"
  std::vector<std::string> includes;
};
CudaPart emit_cuda_part(const schedule::KernelDesc& desc, const schedule::CudaStitchDesc& body, bool marked);

}  // namespace heddle::codegen
