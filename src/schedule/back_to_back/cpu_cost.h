#pragma once

#include <vector>

#include "schedule/back_to_back/cpu.h"
#include "schedule/product/micro_cost.h"

namespace heddle::schedule {

// Predicts the CPU time of a chain of contractions, as one kernel and as separate kernels.
class CpuChainCosts {
 public:
  CpuChainCosts(const CpuBackToBackDesc& desc, const Target& target);

  double one_kernel_us(const CpuChain& chain) const;
  double apart_us() const;
  // The bytes of feature maps that one kernel keeps in caches instead of memory.
  double saved_bytes() const;

 private:
  double link_cycles(const CpuLink& link, const Config& config, int64_t rows) const;
  double gemm_cycles(const GemmDesc& gemm, const CpuGemmConfig& config, int64_t rows) const;
  double conv_cycles(const ConvDesc& conv, const CpuConvConfig& config, int64_t rows) const;
  double winograd_cycles(const WinogradDesc& winograd, const CpuWinogradConfig& config, int64_t rows) const;
  double window_cycles(const WindowDesc& window, int64_t rows) const;
  double weight_bytes(const CpuLink& link) const;
  double map_bytes(size_t link) const;
  double barriers_us(size_t kernels) const;

  const CpuBackToBackDesc& d_;
  const CpuTarget& cpu_;
  const MicroCosts micro_;
};

}  // namespace heddle::schedule
