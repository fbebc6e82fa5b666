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

// A problem with all defaults filled in, and its kernel description, from which configurations are made.
struct ResolvedGemm {
  GemmProblem problem;  // leading dimensions and strides given as 0 ("dense") are filled in
  schedule::KernelDesc desc;
  DType accumulator = DType::kF32;

  const schedule::ContractionDesc& contraction() const;
  const schedule::Product& gemm() const;
  // The key of the problem in the tuner's database.
  std::string text() const;
  double operations() const;
  // A lower bound of the time, in us: max(operations / sustained rate of the device, bytes / bandwidth).
  double floor_us(const CudaTarget& target) const;
  bool is_empty() const { return problem.m == 0 || problem.n == 0 || problem.batch == 0; }
};

// Fills in the defaults of a problem. Throws the same errors as Gemm::prepare() for an invalid problem.
ResolvedGemm resolve(const GemmProblem& problem);

// The number of elements in memory between the first and the last element of an epilogue operand, inclusive.
int64_t extent_of(const Operand& operand, const GemmProblem& resolved);
// The same number for a batch of matrices. `leading` is the distance between rows, `stride` the distance between
// matrices, both in elements.
int64_t extent_of(int64_t rows, int64_t columns, int64_t leading, int64_t stride, int64_t batch);

// Configurations worth compiling, best prediction first. Configurations that cannot run are omitted. If `most` is not
// 0, returns at most `most` configurations, with at most two per tile size: the cost model is least accurate in
// comparing configurations that differ only in clusters and splits. If `family` is given, returns only configurations
// of this family.
std::vector<schedule::CudaCandidate> worthwhile(const ResolvedGemm& gemm, const CudaTarget& target, int most,
                                                const std::string& family = {});
// All configurations; those that cannot run come last.
std::vector<schedule::CudaCandidate> all_candidates(const ResolvedGemm& gemm, const CudaTarget& target);

}  // namespace heddle::ops
