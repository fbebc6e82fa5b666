#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "runtime/cuda/launch.h"

namespace heddle::ops {

// Launches whose operands change from call to call, laid out so that a call copies one block of arguments, fills in
// addresses and enqueues: no allocation, no text. Tensor maps are encoded when an address is first seen and kept for
// the last few. Thread-safe.
class Launcher {
 public:
  // `module` must outlive the launcher.
  Launcher(const runtime::CudaContext& context, const runtime::CudaModule& module,
           const std::vector<CudaLaunch>& launches);

  // `addresses` are counted as the launches count operands. Throws kDevice.
  void launch(std::span<const uint64_t> addresses, CudaDriver::Handle stream) const;

 private:
  struct alignas(64) Map {
    std::array<uint64_t, kTensorMapBytes / 8> words;
  };
  // The last addresses that a tensor map was encoded for.
  struct MapCache {
    static constexpr size_t kEntries = 8;
    std::array<uint64_t, kEntries> base{};
    std::array<Map, kEntries> map{};
    size_t next = 0;
  };
  struct Patch {
    uint32_t offset;  // in the block
    int operand;
  };
  struct Launch {
    std::string symbol;
    CudaDriver::Handle function = nullptr;
    CudaLaunchConfig config;
    std::array<CudaLaunchAttribute, 3> attributes;
    std::vector<TensorMapDesc> maps;  // at the beginning of the block
    std::vector<std::byte> block;     // maps, then arguments, each aligned to 64 bytes
    std::vector<uint32_t> offsets;    // of each argument in the block
    std::vector<Patch> patches;
    size_t first_cache = 0;  // of its maps
  };

  void add(const runtime::CudaModule& module, const CudaLaunch& launch);
  void encode(const Launch& launch, std::span<const uint64_t> addresses, std::byte* block) const;
  void enqueue(const Launch& launch, CudaLaunchConfig& config, void** arguments) const;

  const runtime::CudaContext& context_;
  std::vector<Launch> launches_;
  mutable std::mutex mutex_;
  mutable std::vector<MapCache> caches_;
};

}  // namespace heddle::ops
