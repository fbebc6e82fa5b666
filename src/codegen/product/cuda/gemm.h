#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "codegen/codegen.h"
#include "codegen/product/cuda/epilogue.h"
#include "schedule/product/cuda/gemm.h"
#include "schedule/product/cuda/tile.h"

namespace heddle::codegen {

// One instance as text. Its kernels are called as make_launches() calls them, `symbol` in place of "gemm", each with
// what it needs and nothing else: a product of which parts of k are summed later is the same for all epilogues, the sum
// the same for all products. The functor's block is the last argument of the launch `epilogue_launch`. Without
// `returned` (which store's value the kernel writes to D where the configuration's store is kTma) that is an error for
// kTma.
struct CudaGemmUnit {
  std::vector<KernelText> kernels;
  CudaFunctor epilogue;
  // All of them as one translation unit.
  std::string source() const;
};
// The kernel that sums parts of k and calls the epilogue.
KernelText reduce_kernel(std::string_view sum_type, const CudaFunctor& epilogue, const std::string& symbol);
CudaGemmUnit gemm_unit(const schedule::CudaGemmProblem& problem, const schedule::CudaGemmConfig& config,
                       const schedule::Epilogue& epilogue, const std::vector<schedule::Operand>& operands,
                       const std::string& symbol = "gemm");
// The same for a problem with views, of these operands.
CudaGemmUnit gemm_views_unit(const schedule::CudaGemmProblem& problem, const schedule::CudaGemmConfig& config,
                             const schedule::CudaTileProblem& views, const schedule::Epilogue& epilogue,
                             const std::vector<schedule::Operand>& operands, const std::string& symbol);

}  // namespace heddle::codegen
