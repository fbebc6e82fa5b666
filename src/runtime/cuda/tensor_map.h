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

// The tensor map of an operand that lies at `base`, to which the description's offset is added. Throws kInvalidArgument
// where the sum is no multiple of 16; `symbol` names the kernel.
TensorMap encode_tensor_map(const CudaContext& context, const TensorMapDesc& desc, uint64_t base, const char* symbol);

// The tensor maps of a launch whose operands move from call to call. The driver takes longer to encode one than to
// launch, so that for each map the results for the last few descriptions and addresses are kept. Thread-safe.
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
    size_t next = 0;  // to be replaced
  };
  std::mutex mutex_;
  std::vector<Entries> entries_;  // by map
};

}  // namespace heddle::runtime
