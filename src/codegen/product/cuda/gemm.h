#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "codegen/codegen.h"
#include "codegen/cuda_phase.h"
#include "codegen/product/cuda/epilogue.h"
#include "codegen/product/cuda/operand.h"
#include "codegen/text/kernel_name.h"
#include "schedule/product/cuda/family.h"

namespace heddle::codegen {

// The source text of one GEMM instance. Its kernels have the names that Family::launches() uses. Each kernel contains
// only the parts that it needs: a split-k product is the same for all epilogues, and its final sum is the same for all
// products. The argument block of the epilogue's functor is the last argument of the last launch.
struct CudaGemmUnit {
  struct Kernel {
    std::string suffix;  // of the kernel's name: "", "_reduce"
    std::vector<std::string> includes;
    TextOf text;
    bool waits = false;  // True if the kernel's code itself waits for the previous launch
  };
  std::vector<Kernel> kernels;
  CudaFunctor epilogue;
  // Returns all kernels as one translation unit. Its kernels are called "gemm" and so on, and do not wait for the
  // previous launch.
  std::string source() const;
};
// `of`: the source texts of generated operands, which are read by loader code instead of as plain matrices. Unused by
// kernels without such operands. `copies`: products side by side (ContractionDesc::copies).
CudaGemmUnit gemm_unit(const schedule::CudaInstance& instance, const OperandTexts& of,
                       const schedule::Epilogue& epilogue, const std::vector<schedule::Operand>& operands,
                       int copies = 1);

// The kernel that multiplies, without its launch, as a phase of a sequence (codegen/cuda_phase.h). The template has
// the functions `kernel`_block and, for `ahead`, `kernel`_ahead.
CudaPhase gemm_phase(const schedule::CudaInstance& instance, const OperandTexts& of, const schedule::Epilogue& epilogue,
                     const std::vector<schedule::Operand>& operands, bool ahead);

// Appends the argument blocks of generated operands to the launch of "gemm".
void add_operands(std::vector<CudaLaunch>& launches, const schedule::CudaInstance& instance, const OperandTexts& of);
// Appends a functor's argument block to a launch.
void add_argument(CudaLaunch& launch, const std::vector<uint8_t>& block, const std::vector<PointerPatch>& pointers);

// The C++ name of a type that tensor cores multiply or that a TMA kernel stores: "tile::half", "tile::sm90::e4m3".
std::string wgmma_type(DType type);

}  // namespace heddle::codegen
