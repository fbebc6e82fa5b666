#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace heddle::profile {

// How often warps were found at an instruction of a kernel.
struct PcSample {
  std::string kernel;
  uint64_t offset = 0;   // of the instruction, from the kernel's first
  uint64_t samples = 0;  // of warps that were there
  uint64_t memory = 0;   // of these, of warps that waited for the device's memory, whatever asked for it
};

// Samples the program counters of warps on a GPU, by CUPTI: in each SM one warp each 2^`period` cycles,
// while kernels run as they always do. Kernels whose code was loaded before it was made are not known to it. Needs the
// permission to read the device's counters.
class PcSampler {
 public:
  // Throws kDevice with the remedy where CUPTI cannot sample.
  PcSampler(void* cuda_context, uint32_t period);
  ~PcSampler();
  PcSampler(const PcSampler&) = delete;
  PcSampler& operator=(const PcSampler&) = delete;

  // What runs between them, which has to have ended, is sampled. Once each. Throws kDevice.
  void start();
  std::vector<PcSample> stop();
  uint64_t dropped() const;

 private:
  struct Buffers;
  std::unique_ptr<Buffers> buffers_;
};

}  // namespace heddle::profile
