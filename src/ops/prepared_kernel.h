#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ops/launcher.h"
#include "schedule/kernel_desc.h"

namespace heddle::ops {

// The CUDA C++ unit of one configuration, and its launches. The operands of a launch are the operands of the
// description, followed by the workspace and the counters.
struct KernelText {
  std::string unit;
  std::vector<CudaLaunch> launches;
  int64_t workspace_bytes = 0, counter_bytes = 0;
};
KernelText make_kernel(const schedule::KernelDesc& desc, const schedule::Config& config, const CudaTarget& target);

// Allocates device memory and fills it with zeros.
std::unique_ptr<runtime::CudaBuffer> zeroed(const runtime::CudaContext& context, int64_t bytes);

// The number of configurations that prepare() tries before it fails. A GEMM tries one more.
inline constexpr size_t kMostTries = 6;

// A configuration, and the reason for choosing it.
struct ConfigChoice {
  schedule::Config config;
  std::string reason;
};

// A kernel that is compiled, loaded and ready to launch, with one workspace per stream. Thread-safe.
class PreparedKernel {
 public:
  // Uses the first choice that compiles without spilling registers. Throws kCompilerFailed if no choice does, and
  // kNoCompiler or kDevice.
  PreparedKernel(std::shared_ptr<const runtime::CudaContext> context, const schedule::KernelDesc& desc,
                 std::span<const ConfigChoice> choices, bool use_cache);

  // `addresses` has the addresses of the description's operands, followed by two free entries, which launch() fills.
  void launch(std::span<uint64_t> addresses, CudaDriver::Handle stream) const;

  std::string config, reason;
  int64_t workspace_bytes = 0;

 private:
  void load(const schedule::KernelDesc& desc, const schedule::Config& choice, bool use_cache);
  uint64_t workspace_of(CudaDriver::Handle stream) const;
  int64_t counters_at() const { return (workspace_bytes + 255) / 256 * 256; }

  int64_t counter_bytes_ = 0;
  std::shared_ptr<const runtime::CudaContext> context_;
  std::unique_ptr<runtime::CudaModule> module_;
  std::unique_ptr<Launcher> launcher_;
  mutable std::mutex mutex_;
  mutable std::map<std::pair<CudaDriver::Handle, uint64_t>, std::unique_ptr<runtime::CudaBuffer>> workspaces_;
};

// An operand for checked_address(): its name in error messages, and its size in bytes. Addresses must be multiples of
// 16.
struct OperandSpan {
  std::string name;  // "gemm: A"
  int64_t bytes = 0;
};
uint64_t checked_address(const OperandSpan& operand, const void* pointer);

}  // namespace heddle::ops
