#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lang/cuda/unit.h"
#include "runtime/cuda/device.h"
#include "runtime/cuda/launch.h"

namespace heddle::lang::cuda {

// The name of a device's compilation target, such as "cuda-sm_90a".
std::string target_name(const CudaTarget& target);

// A compiled kernel of the tile language. Thread-safe.
class CudaKernel {
 public:
  // Compiles a verified kernel for a target such as "cuda-sm_90a", or loads it from the user's cache. Throws
  // kUnsupportedOperator, kInvalidArgument if `target` is not a CUDA target, and the errors of the compiler.
  CudaKernel(Kernel kernel, std::string_view target, Loads loads = Loads::kAny);

  // Launches the kernel for a grid of programs on a stream of `device`. A null `stream` is the legacy default stream.
  // `arguments` has one word of eight bytes for each parameter, in order.
  void launch(std::array<int64_t, 3> grid, std::span<const uint64_t> arguments, CudaDriver::Handle stream,
              int device = 0) const;

  const CudaUnit& unit() const { return unit_; }
  const std::string& machine_code() const { return machine_code_; }
  int registers() const { return registers_; }  // per thread; 0 if the compiler does not report it
  int64_t spills() const { return spills_; }    // bytes

 private:
  struct Loaded {
    std::shared_ptr<const runtime::CudaContext> context;
    std::unique_ptr<runtime::CudaModule> module;
    CudaDriver::Handle function = nullptr;
    std::unique_ptr<runtime::TensorMapCache> maps;
  };
  CudaKernel(Kernel kernel, const CudaTarget& target, Loads loads);
  void launch_with(std::span<const TensorMapDesc> maps, const CudaLaunchConfig& config,
                   std::span<const uint64_t> arguments, int device) const;
  const Loaded& on(int device) const;
  const CudaKernel& without_maps() const;

  const Kernel kernel_;  // as passed to the constructor
  const CudaTarget target_;
  CudaUnit unit_;
  std::string machine_code_;
  int registers_ = 0;
  int64_t spills_ = 0;
  mutable std::mutex mutex_;
  mutable std::map<int, Loaded> loaded_;  // guarded by mutex_; entries never change
  mutable std::once_flag made_;
  mutable std::unique_ptr<const CudaKernel> without_maps_;  // for arguments that tensor maps cannot describe
};

}  // namespace heddle::lang::cuda
