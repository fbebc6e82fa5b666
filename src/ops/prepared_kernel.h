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

// One configuration as a unit of CUDA C++, and how it is launched: operands are those of the description, then the
// workspace and the counters.
struct KernelText {
  std::string unit;
  std::vector<CudaLaunch> launches;
  int64_t workspace_bytes = 0, counter_bytes = 0;
};
KernelText make_kernel(const schedule::KernelDesc& desc, const schedule::Config& config, const CudaTarget& target);

// Device memory whose bytes are zero.
std::unique_ptr<runtime::CudaBuffer> zeroed(const runtime::CudaContext& context, int64_t bytes);

// Configurations that may fail to compile before prepare() does.
inline constexpr size_t kMostTries = 6;

// A configuration and why it was chosen.
struct ConfigChoice {
  schedule::Config config;
  std::string reason;
};

// A kernel that is compiled, loaded and laid out, with a workspace for each stream on which it was called. Thread-safe.
class PreparedKernel {
 public:
  // The first of the choices that compiles: one whose registers spill is none, the next best takes its place. Throws
  // kCompilerFailed where none does, kNoCompiler, kDevice.
  PreparedKernel(std::shared_ptr<const runtime::CudaContext> context, const schedule::KernelDesc& desc,
                 std::span<const ConfigChoice> choices, bool use_cache);

  // `addresses`: of the description's operands; behind them is room for two more.
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

// What is said of an operand that a call may not have. `bytes`: how many it has. All addresses are multiples of 16.
struct OperandSpan {
  std::string name;  // "gemm: A"
  int64_t bytes = 0;
};
uint64_t checked_address(const OperandSpan& operand, const void* pointer);

}  // namespace heddle::ops
