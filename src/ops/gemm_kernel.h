#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "codegen/codegen.h"
#include "heddle/ops.h"
#include "ops/epilogue.h"
#include "schedule/product/cuda/contraction.h"

namespace heddle::ops {

// A problem with all defaults filled in, and its description, which has configurations.
struct ResolvedGemm {
  GemmProblem problem;  // dimensions and strides that were 0 for "dense" are filled in
  schedule::KernelDesc desc;
  DType accumulator = DType::kF32;

  const schedule::ContractionDesc& contraction() const;
  const schedule::Product& gemm() const;
  // The key of the problem in the tuner's database.
  std::string text() const;
  double operations() const;
  // max(operations / sustained rate of the device, bytes / bandwidth), in us.
  double floor_us(const CudaTarget& target) const;
  bool is_empty() const { return problem.m == 0 || problem.n == 0 || problem.batch == 0; }
};

// Throws as Gemm::prepare() does for a wrong problem.
ResolvedGemm resolve(const GemmProblem& problem);

// The number of elements from the first to the last of an operand of the epilogue.
int64_t extent_of(const Operand& operand, const GemmProblem& resolved);
// The same for a matrix.
int64_t extent_of(int64_t rows, int64_t columns, int64_t leading, int64_t stride, int64_t batch);

// Configurations worth compiling, best prediction first. If `most` is not 0, at most `most` of those that can run, and
// at most two per tile: the model errs most between clusters and splits of one tile. `family`: only this one.
std::vector<schedule::CudaCandidate> worthwhile(const ResolvedGemm& gemm, const CudaTarget& target, int most,
                                                const std::string& family = {});
// All configurations; those that cannot run come last.
std::vector<schedule::CudaCandidate> all_candidates(const ResolvedGemm& gemm, const CudaTarget& target);

}  // namespace heddle::ops
