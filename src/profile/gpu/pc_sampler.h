#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace heddle::profile {

// Samples of warps at one instruction of a kernel.
struct PcSample {
  std::string kernel;
  uint64_t offset = 0;   // of the instruction, from the kernel's first
  uint64_t samples = 0;  // of warps at this instruction
  uint64_t memory = 0;   // of these, of warps that waited for device memory, whichever instruction asked for it
};

// Samples the program counters of warps on a GPU through CUPTI: one warp per SM every 2^`period` cycles, while kernels
// run as usual. It does not know kernels whose code was loaded before it was made. Needs the permission to read the
// device's counters.
class PcSampler {
 public:
  // Throws kDevice with the remedy if CUPTI cannot sample.
  PcSampler(void* cuda_context, uint32_t period);
  ~PcSampler();
  PcSampler(const PcSampler&) = delete;
  PcSampler& operator=(const PcSampler&) = delete;

  // Samples what runs between start() and stop(); it must have ended by stop(). Call each once. Throws kDevice.
  void start();
  std::vector<PcSample> stop();
  uint64_t dropped() const;

 private:
  struct Buffers;
  std::unique_ptr<Buffers> buffers_;
};

}  // namespace heddle::profile
