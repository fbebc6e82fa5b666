#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <vector>

#include "runtime/cuda/device.h"
#include "target/cuda_launch.h"

namespace heddle::runtime {

// A tensor map as the device reads it: an argument of a launch.
struct alignas(64) TensorMap {
  std::array<uint64_t, kTensorMapBytes / 8> words;
};

// Encodes the tensor map of an operand at `base` plus the description's offset. Throws kInvalidArgument if the sum is
// not a multiple of 16; `symbol` names the kernel in the message.
TensorMap encode_tensor_map(const CudaContext& context, const TensorMapDesc& desc, uint64_t base, const char* symbol);

// A cache of the tensor maps of a launch whose operands move from call to call. Encoding a map takes the driver longer
// than a launch, so each map's results for the last few descriptions and addresses are kept. Thread-safe.
class TensorMapCache {
 public:
  explicit TensorMapCache(size_t maps) : entries_(maps) {}
  // Map number `index` of the launch.
  TensorMap get(const CudaContext& context, size_t index, const TensorMapDesc& desc, uint64_t base, const char* symbol);

 private:
  struct Entry {
    TensorMapDesc desc;
    uint64_t base = 0;
    TensorMap map;
  };
  struct Entries {
    static constexpr size_t kMost = 8;
    std::vector<Entry> kept;
    size_t next = 0;  // the entry to replace next
  };
  std::mutex mutex_;
  std::vector<Entries> entries_;  // by map
};

}  // namespace heddle::runtime
