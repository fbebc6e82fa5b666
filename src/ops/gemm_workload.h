#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "ops/gemm_kernel.h"
#include "runtime/cuda/device.h"

namespace heddle::ops {

// Random operands of a problem on the host and on a device, with guard bytes after D, and expected values of D.
class GemmWorkload {
 public:
  // `reference`: also compare with sums in double, not only with the first result that was checked.
  GemmWorkload(const runtime::CudaContext& context, const ResolvedGemm& gemm, bool reference, uint64_t seed);

  // Device addresses in the operand order of launches.
  std::vector<uint64_t> operands(uint64_t workspace, uint64_t counters) const;
  // Sets all elements of D, the guard bytes and all results of reductions to NaN.
  void poison();
  // The largest error of D divided by the bound for its types; at most 1 if D is correct. Infinite if an element was
  // not written, a guard byte was overwritten, or an element or a reduction is far from that of the first correct D. Of
  // a large D only some rows are read, spread evenly.
  double check();

 private:
  struct Sample {
    int64_t index;  // index into the rows that are read
    double value, bound;
  };
  // For elements whose sums were added in another order, with operands of about 1.
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
  std::vector<int64_t> rows_;   // the rows of D that are read, counted across batches
  std::vector<uint8_t> first_;  // these rows of the first correct D
  std::vector<std::vector<float>> first_reductions_;
  std::unique_ptr<runtime::CudaBuffer> device_a_, device_b_, device_d_;
  std::vector<std::unique_ptr<runtime::CudaBuffer>> device_extra_;
};

}  // namespace heddle::ops
