#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace heddle::profile {

// The samples of warps at one instruction of a kernel.
struct PcSample {
  std::string kernel;
  uint64_t offset = 0;   // of the instruction, in bytes from the start of the kernel
  uint64_t samples = 0;  // warps sampled at this instruction
  uint64_t memory = 0;   // those of `samples` that waited for device memory, whichever instruction issued the access
};

// Samples the program counters of warps on a GPU through CUPTI: one warp per SM every 2^`period` cycles, while kernels
// run as usual. Kernels whose code was loaded before the sampler was created are not known to it. Requires the
// permission to read the device's performance counters.
class PcSampler {
 public:
  // Throws kDevice with a remedy if CUPTI cannot sample.
  PcSampler(void* cuda_context, uint32_t period);
  ~PcSampler();
  PcSampler(const PcSampler&) = delete;
  PcSampler& operator=(const PcSampler&) = delete;

  // Samples the kernels that run between start() and stop(); they must have ended before stop() is called. Call each
  // function once. Both throw kDevice.
  void start();
  std::vector<PcSample> stop();
  uint64_t dropped() const;

 private:
  struct Buffers;
  std::unique_ptr<Buffers> buffers_;
};

}  // namespace heddle::profile
