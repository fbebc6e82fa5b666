#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "ops/gemm_kernel.h"
#include "runtime/cuda/device.h"

namespace heddle::ops {

// Random operands of a GEMM on the host and on a device, with guard bytes after D, and the expected values of D.
class GemmWorkload {
 public:
  // `reference`: if true, results are also compared with sums in double, not only with the first result that was
  // checked.
  GemmWorkload(const runtime::CudaContext& context, const ResolvedGemm& gemm, bool reference, uint64_t seed);

  // Device addresses of the operands, in the order of launch arguments.
  std::vector<uint64_t> operands(uint64_t workspace, uint64_t counters) const;
  // Sets all elements of D, the guard bytes and all results of reductions to NaN.
  void poison();
  // Returns the largest error of D divided by the error bound for its types; at most 1 if D is correct. Returns
  // infinity if an element was not written, a guard byte was overwritten, or an element or a reduction differs too much
  // from the first correct result. If D is large, only some rows are checked, evenly spaced.
  double check();

 private:
  struct Sample {
    int64_t index;  // index into the checked rows
    double value, bound;
  };
  // The allowed difference of two results that add in different orders, if operands are about 1 in size.
  struct Tolerance {
    double relative, absolute;
  };
  Tolerance tolerance() const;
  bool reductions_agree();
  void take_samples();
  std::vector<int64_t> choose_rows() const;
  std::vector<uint8_t> read_rows() const;
  double reference_at(int64_t batch, int64_t row, int64_t column, double& magnitude) const;

  const ResolvedGemm& gemm_;
  const bool reference_;
  const runtime::CudaContext& context_;
  std::vector<uint8_t> a_, b_;
  std::vector<std::vector<uint8_t>> extra_;
  size_t d_bytes_;
  std::vector<Sample> samples_;
  std::vector<int64_t> rows_;   // the rows of D that are checked, numbered across batches
  std::vector<uint8_t> first_;  // the checked rows of the first correct D
  std::vector<std::vector<float>> first_reductions_;
  std::unique_ptr<runtime::CudaBuffer> device_a_, device_b_, device_d_;
  std::vector<std::unique_ptr<runtime::CudaBuffer>> device_extra_;
};

}  // namespace heddle::ops
