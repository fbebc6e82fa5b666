#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/cuda/launch.h"

namespace heddle::ops {

// A sequence of kernel launches whose operand addresses change from call to call. A call copies a prepared block of
// arguments, fills in the addresses and enqueues the kernels. It allocates no memory and processes no text.
// Thread-safe.
class Launcher {
 public:
  // `module` must outlive the launcher.
  Launcher(const runtime::CudaContext& context, const runtime::CudaModule& module,
           const std::vector<CudaLaunch>& launches);

  // Enqueues the launches. `addresses` are in the operand order of the launches. Throws kDevice.
  void launch(std::span<const uint64_t> addresses, CudaDriver::Handle stream) const;

 private:
  struct Patch {
    uint32_t offset;  // of the address in the block
    int operand;
  };
  struct Launch {
    std::string symbol;
    CudaDriver::Handle function = nullptr;
    CudaLaunchConfig config;
    std::array<CudaLaunchAttribute, 3> attributes;
    std::vector<TensorMapDesc> maps;  // at the beginning of the block
    std::vector<std::byte> block;     // the maps, then the arguments, each aligned to 64 bytes
    std::vector<uint32_t> offsets;    // of each argument in the block
    std::vector<Patch> patches;
    std::unique_ptr<runtime::TensorMapCache> cache;
  };

  void add(const runtime::CudaModule& module, const CudaLaunch& launch);

  const runtime::CudaContext& context_;
  std::vector<Launch> launches_;
};

}  // namespace heddle::ops
