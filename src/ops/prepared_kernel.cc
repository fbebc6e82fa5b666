#include "ops/prepared_kernel.h"

#include <atomic>

#include "base/check.h"
#include "codegen/codegen.h"
#include "jit/cuda/nvrtc.h"
#include "schedule/kernel_plan.h"

namespace heddle::ops {
namespace {

constexpr uint64_t kAlignment = 16;

// CU_STREAM_PER_THREAD: one name for the streams of all threads.
const CudaDriver::Handle kStreamPerThread = reinterpret_cast<CudaDriver::Handle>(uintptr_t{2});

// Of no two threads the same, as their identifiers are when one has ended.
uint64_t number_of_thread() {
  static std::atomic<uint64_t> threads{0};
  thread_local const uint64_t number = ++threads;
  return number;
}

}  // namespace

KernelText make_kernel(const schedule::KernelDesc& desc, const schedule::Config& config, const CudaTarget& target) {
  const Target device = Target::of(target);
  codegen::KernelSource source = codegen::emit(schedule::plan_kernel(desc, config, device), device);
  KernelText kernel;
  kernel.unit = codegen::translation_unit({&source});
  kernel.launches = std::move(source.launches);
  kernel.workspace_bytes = source.workspace_bytes;
  kernel.counter_bytes = source.counter_bytes;
  return kernel;
}

std::unique_ptr<runtime::CudaBuffer> zeroed(const runtime::CudaContext& context, int64_t bytes) {
  auto buffer = std::make_unique<runtime::CudaBuffer>(context, static_cast<size_t>(bytes));
  const std::vector<uint8_t> zeros(static_cast<size_t>(bytes));
  buffer->write(zeros.data(), zeros.size());
  return buffer;
}

PreparedKernel::PreparedKernel(std::shared_ptr<const runtime::CudaContext> context, const schedule::KernelDesc& desc,
                               std::span<const ConfigChoice> choices, bool use_cache)
    : context_(std::move(context)) {
  for (size_t i = 0; launcher_ == nullptr; ++i) {
    try {
      load(desc, choices[i].config, use_cache);
      config = schedule::name_of(choices[i].config);
      reason = choices[i].reason;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kCompilerFailed || i + 1 == choices.size()) throw;
    }
  }
}

void PreparedKernel::load(const schedule::KernelDesc& desc, const schedule::Config& choice, bool use_cache) {
  const CudaTarget& target = context_->device().target;
  const KernelText kernel = make_kernel(desc, choice, target);
  const jit::CompiledCubin cubin = jit::compile_cubin(kernel.unit, target.architecture(), use_cache);
  module_ = std::make_unique<runtime::CudaModule>(*context_, cubin.bytes);
  launcher_ = std::make_unique<Launcher>(*context_, *module_, kernel.launches);
  workspace_bytes = kernel.workspace_bytes;
  counter_bytes_ = kernel.counter_bytes;
}

// The counters lie behind the workspace; kernels leave them zero.
uint64_t PreparedKernel::workspace_of(CudaDriver::Handle stream) const {
  const uint64_t thread = stream == kStreamPerThread ? number_of_thread() : 0;
  const std::lock_guard lock(mutex_);
  std::unique_ptr<runtime::CudaBuffer>& workspace = workspaces_[{stream, thread}];
  if (workspace == nullptr) {
    context_->make_current();
    workspace = zeroed(*context_, counters_at() + counter_bytes_);
  }
  return workspace->address();
}

void PreparedKernel::launch(std::span<uint64_t> addresses, CudaDriver::Handle stream) const {
  const size_t count = addresses.size() - 2;
  addresses[count] = workspace_bytes + counter_bytes_ > 0 ? workspace_of(stream) : 0;
  addresses[count + 1] = addresses[count] + static_cast<uint64_t>(counters_at());
  launcher_->launch(addresses, stream);
}

uint64_t checked_address(const OperandSpan& operand, const void* pointer) {
  const auto address = reinterpret_cast<uint64_t>(pointer);
  if (address % kAlignment != 0) [[unlikely]] {
    fail(ErrorCode::kInvalidArgument, operand.name,
         fmt::format("its address {:#x} is not a multiple of {}", address, kAlignment),
         "Allocate it with the CUDA allocator, or copy what begins elsewhere");
  }
  if (address == 0 && operand.bytes > 0) [[unlikely]] {
    fail(ErrorCode::kInvalidArgument, operand.name, "its address is null");
  }
  return address;
}

}  // namespace heddle::ops
