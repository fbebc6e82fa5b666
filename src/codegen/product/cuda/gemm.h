#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "codegen/codegen.h"
#include "codegen/product/cuda/epilogue.h"
#include "codegen/product/cuda/operand.h"
#include "codegen/text/kernel_name.h"
#include "schedule/product/cuda/family.h"

namespace heddle::codegen {

// The text of one instance. Its kernels have the names that Family::launches() uses. Each contains only what it needs:
// a split-k product is the same for all epilogues, and its final sum the same for all products. The functor's block is
// the last argument of the last launch.
struct CudaGemmUnit {
  struct Kernel {
    std::string suffix;  // of its name: "", "_reduce"
    std::vector<std::string> includes;
    TextOf text;
    bool waits = false;  // by itself for the previous launch
  };
  std::vector<Kernel> kernels;
  CudaFunctor epilogue;
  // All kernels as one translation unit, named "gemm" and so on, without the lines that wait for the previous launch.
  std::string source() const;
};
// `of`: the operands of a kernel that takes generated ones.
CudaGemmUnit gemm_unit(const schedule::CudaInstance& instance, const OperandTexts& of,
                       const schedule::Epilogue& epilogue, const std::vector<schedule::Operand>& operands);

// Appends the blocks of generated operands to the launch of "gemm".
void add_operands(std::vector<CudaLaunch>& launches, const schedule::CudaInstance& instance, const OperandTexts& of);
// Appends a functor's block to a launch.
void add_argument(CudaLaunch& launch, const std::vector<uint8_t>& block, const std::vector<PointerPatch>& pointers);

// A type that tensor cores multiply or that a TMA kernel stores: "tile::half", "tile::sm90::e4m3".
std::string wgmma_type(DType type);

}  // namespace heddle::codegen
