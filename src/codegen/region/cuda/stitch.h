#pragma once

#include "codegen/codegen.h"
#include "schedule/region/cuda/stitch.h"

namespace heddle::codegen {

struct Naming;  // codegen/naming.h

// With `marked` the symbol is a prefix yet, which launches do not have, and the text has kStandIn in its place and
// marks around numbers (numbers.h). Not for kernels of the whole grid.
KernelSource emit_cuda_stitch(const schedule::KernelPlan& plan, const schedule::CudaStitchDesc& body,
                              bool marked = false, const Naming* naming = nullptr);

// The first lines of a kernel that waits for the launch in front of its own; in kWaitHeader.
inline constexpr const char* kBeginEarly = "tile::sm90::launch_dependents();\n  tile::sm90::grid_dependency_wait();";

// A kernel as a function that others call, for one of its blocks: (operands..., block, blocks), with the array of
// arguments behind the operands where it is marked.
struct CudaPart {
  std::string parameters, body;
  std::vector<std::string> types;  // of the operands, "const float*"
  std::vector<std::string> includes;
};
CudaPart emit_cuda_part(const schedule::KernelDesc& desc, const schedule::CudaStitchDesc& body, bool marked);

}  // namespace heddle::codegen
