#include "driver/target/backend.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/check.h"
#include "base/interface/option.h"
#include "base/memory.h"
#include "driver/target/cuda_trial.h"
#include "heddle/error.h"
#include "lang/cpu/lower.h"
#include "lang/cuda/unit.h"
#include "runtime/cuda/device.h"
#include "target/cuda_driver.h"
#include "target/hip_driver.h"

namespace heddle::driver {
namespace {

class CpuBackend : public Backend {
 public:
  void require_device(int) const override {}
  void check_memory(const std::string& model, const runtime::Plan& plan, const Target&) const override {
    driver::check_memory(model, plan.arena_bytes, "its intermediate values");
  }
  std::string_view text_suffix() const override { return ".cc"; }
  MachineCode compile(const KernelSet& kernels, const Target& target, int jobs, bool use_cache,
                      const KernelProgress& progress) const override {
    return compile_library(kernels, target.cpu, jobs, use_cache, progress);
  }
  decltype(runtime::Step::action) step(const codegen::KernelSource& source,
                                       std::vector<uint32_t> operands) const override {
    return runtime::KernelStep{source.symbol, std::move(operands), source.tasks, source.scratch_bytes};
  }
  codegen::KernelSource tile_launch(const lang::Kernel& kernel, const lang::Launch& launch, std::span<const int64_t>,
                                    const Target&) const override {
    return lang::cpu::lower_launch(kernel, launch);
  }
  double copy_bytes_per_second(const Target& target) const override { return target.cpu.copy_gbps * 1e9; }
  std::unique_ptr<tune::GroupTrial> trial(std::vector<schedule::ScheduledGroup> candidates, const Target& target,
                                          int /*device*/, const tune::GraphValues& graph,
                                          int64_t flush_bytes) const override {
    return std::make_unique<tune::CpuTrial>(std::move(candidates), target, graph, flush_bytes);
  }
};

class GpuBackend : public Backend {
 public:
  void check_memory(const std::string& model, const runtime::Plan& plan, const Target& target) const override {
    const int64_t memory = target.memory_bytes();
    int64_t needed = plan.arena_bytes;
    for (const Tensor& constant : plan.constants) needed += static_cast<int64_t>(constant.bytes());
    if (needed <= memory) return;
    fail(
        ErrorCode::kOutOfMemory, model,
        fmt::format("weights and intermediate values need {} bytes ({:.1f} GB), the GPU has {} ({:.1f} GB)", needed,
                    static_cast<double>(needed) * 1e-9, memory, static_cast<double>(memory) * 1e-9),
        fmt::format("Reduce the batch or the sequence length ({}), or use {}", option::shape(), option::target("cpu")));
  }
  MachineCode compile(const KernelSet& kernels, const Target& target, int jobs, bool use_cache,
                      const KernelProgress& progress) const override {
    return compile_cubins(kernels, target.gpu(), jobs, use_cache, progress);
  }
  decltype(runtime::Step::action) step(const codegen::KernelSource& source,
                                       std::vector<uint32_t> operands) const override {
    return runtime::CudaStep{source.launches, std::move(operands), source.counter_bytes};
  }
  double copy_bytes_per_second(const Target& target) const override { return target.gpu().model.chip.copy_tbps * 1e12; }
};

class CudaBackend : public GpuBackend {
 public:
  void require_device(int device) const override {
    if (device < 0) CudaDriver::get();
  }
  std::string_view text_suffix() const override { return ".cu"; }
  codegen::KernelSource tile_launch(const lang::Kernel& kernel, const lang::Launch& launch,
                                    std::span<const int64_t> bytes, const Target& target) const override {
    return lang::cuda::cuda_launch(kernel, launch, bytes, target.cuda);
  }
  std::unique_ptr<tune::GroupTrial> trial(std::vector<schedule::ScheduledGroup> candidates, const Target& target,
                                          int device, const tune::GraphValues& graph,
                                          int64_t /*flush_bytes*/) const override {
    return std::make_unique<CudaTrial>(std::move(candidates), target, graph, runtime::CudaContext::of_device(device));
  }
};

class HipBackend : public GpuBackend {
 public:
  void require_device(int device) const override {
    if (device >= 0) return;
    hip_driver();
    fail(ErrorCode::kDevice, "hip", "the plan is for an AMD GPU that this machine does not have",
         "`heddle devices` lists its GPUs");
  }
  std::string_view text_suffix() const override { return ".hip"; }
  codegen::KernelSource tile_launch(const lang::Kernel&, const lang::Launch&, std::span<const int64_t>,
                                    const Target&) const override {
    fail(ErrorCode::kUnsupportedOperator, "tile program", "there is no code generation for AMD GPUs",
         fmt::format("Use {}", option::target("cuda")));
  }
  std::unique_ptr<tune::GroupTrial> trial(std::vector<schedule::ScheduledGroup> candidates, const Target& target,
                                          int device, const tune::GraphValues& graph,
                                          int64_t /*flush_bytes*/) const override {
    return std::make_unique<CudaTrial>(std::move(candidates), target, graph,
                                       runtime::CudaContext::of_device(device, runtime::GpuApi::kHip));
  }
};

// An error of a compiler that is about edited texts names their files.
[[noreturn]] void edited_failed(const KernelSet& kernels, const Error& error) {
  std::vector<std::string> files;
  for (const auto& [symbol, edited] : kernels.edited()) {
    if (error.why().find(symbol) != std::string::npos) files.push_back(edited.file);
  }
  if (files.empty() || error.code() != ErrorCode::kCompilerFailed) throw error;
  fail(error.code(), fmt::format("{}", fmt::join(files, ", ")), error.why(),
       "Mend the file, or unset HEDDLE_KERNEL_OVERRIDE");
}

}  // namespace

const Backend& backend_of(const Target& target) {
  static const CpuBackend cpu;
  static const CudaBackend cuda;
  static const HipBackend hip;
  return of_kind<Backend>(target.kind, cpu, cuda, hip);
}

MachineCode compile_kernels(const KernelSet& kernels, const Target& target, int jobs, bool use_cache,
                            const KernelProgress& progress) {
  if (kernels.size() == 0) return {};
  try {
    return backend_of(target).compile(kernels, target, jobs, use_cache, progress);
  } catch (const Error& error) {
    edited_failed(kernels, error);
  }
}

void check_memory(const std::string& model, int64_t needed, const char* what) {
  const uint64_t available = available_memory();
  if (static_cast<uint64_t>(needed) <= available) return;
  fail(ErrorCode::kOutOfMemory, model,
       fmt::format("{} need {:.1f} GB, {:.1f} GB are available", what, static_cast<double>(needed) * 1e-9,
                   static_cast<double>(available) * 1e-9),
       fmt::format("Reduce the batch or the sequence length ({}), or close other programs", option::shape()));
}

tune::GraphValues values_of(const ir::Graph& graph) {
  return {[&graph](uint32_t value) { return graph.constant_of(value); },
          [&graph](uint32_t value) { return graph.dtype(value); }};
}

}  // namespace heddle::driver
