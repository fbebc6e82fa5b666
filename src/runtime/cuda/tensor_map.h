#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <vector>

#include "runtime/cuda/device.h"
#include "target/cuda_launch.h"

namespace heddle::runtime {

// A tensor map in the device's format, passed as a launch argument.
struct alignas(64) TensorMap {
  std::array<uint64_t, kTensorMapBytes / 8> words;
};

// Encodes the tensor map of an operand whose address is `base` plus the description's offset. Throws kInvalidArgument
// if this address is not a multiple of 16; `symbol` is the kernel's name for the message.
TensorMap encode_tensor_map(const CudaContext& context, const TensorMapDesc& desc, uint64_t base, const char* symbol);

// A cache of encoded tensor maps for a launch whose operand addresses change between calls. The driver takes longer to
// encode a map than to launch a kernel, so for each map of the launch, the encodings for the last few descriptions and
// addresses are kept. Thread-safe.
class TensorMapCache {
 public:
  explicit TensorMapCache(size_t maps) : entries_(maps) {}
  // Returns map number `index` of the launch.
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
  std::vector<Entries> entries_;  // indexed by map number
};

}  // namespace heddle::runtime
