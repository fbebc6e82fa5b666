#pragma once

#include "codegen/codegen.h"
#include "schedule/cuda_stitch.h"

namespace heddle::codegen {

KernelSource emit_cuda_stitch(const schedule::KernelDesc& desc, const schedule::CudaStitchDesc& body);

// A kernel as a function that others call, for one of its blocks: PART_NAME(operands..., block, blocks).
struct CudaPart {
  std::string text;
  std::vector<std::string> types;  // of the operands, "const float*"
  std::vector<std::string> includes;
};
inline constexpr std::string_view kPartName = "PART_NAME";
CudaPart emit_cuda_part(const schedule::KernelDesc& desc, const schedule::CudaStitchDesc& body);

}  // namespace heddle::codegen
