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

// A problem with everything resolved, as a description that has configurations.
struct ResolvedGemm {
  GemmProblem problem;  // no dimension or stride is 0 for "dense" any more
  schedule::KernelDesc desc;
  DType accumulator = DType::kF32;

  const schedule::ContractionDesc& contraction() const;
  const schedule::Product& gemm() const;
  // Its name in the tuner's database.
  std::string text() const;
  double operations() const;
  // max(operations / what the device sustains, bytes / bandwidth), in us.
  double floor_us(const CudaTarget& target) const;
  bool is_empty() const { return problem.m == 0 || problem.n == 0 || problem.batch == 0; }
};

// Throws as Gemm::prepare() does for a wrong problem.
ResolvedGemm resolve(const GemmProblem& problem);

// Elements from the first to the last of an operand of the epilogue, and where element (batch, row, column) is.
int64_t extent_of(const Operand& operand, const GemmProblem& resolved);
// The same of a matrix.
int64_t extent_of(int64_t rows, int64_t columns, int64_t leading, int64_t stride, int64_t batch);

// Configurations that are worth compiling, best prediction first: at most `most` of those that can run (0: all), and at
// most two of each tile among them, since the model errs most between clusters and parts of one tile. `family`: only of
// this one.
std::vector<schedule::CudaCandidate> worthwhile(const ResolvedGemm& gemm, const CudaTarget& target, int most,
                                                const std::string& family = {});
// All of them, those that cannot run last.
std::vector<schedule::CudaCandidate> all_candidates(const ResolvedGemm& gemm, const CudaTarget& target);

}  // namespace heddle::ops
