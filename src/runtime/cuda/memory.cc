#include "runtime/cuda/memory.h"

#include <algorithm>

namespace heddle::runtime {
namespace {

size_t port_bytes(const Plan& plan, const Port& port) {
  return static_cast<size_t>(plan.buffers[port.buffer].bytes);
}

}  // namespace

CudaRunMemory::CudaRunMemory(CudaCode& code, const Plan& plan)
    : CudaMemory(code),
      plan_(plan),
      arena_(code.context(), static_cast<size_t>(plan.arena_bytes), "the intermediate values of a run"),
      counters_(code.context(), static_cast<size_t>(aligned(code.counter_bytes())), "the counters of a run"),
      inputs_(plan.inputs.size()),
      outputs_(plan.outputs.size()) {
  if (counters_.size() > 0) {
    const std::vector<std::byte> zeros(counters_.size());
    counters_.write(zeros.data(), zeros.size());
  }
}

uint64_t CudaRunMemory::input(size_t port) {
  std::unique_ptr<CudaBuffer>& buffer = inputs_[port];
  if (buffer == nullptr) {
    buffer = std::make_unique<CudaBuffer>(code().context(), port_bytes(plan_, plan_.inputs[port]), "an input");
  }
  return buffer->address();
}

uint64_t CudaRunMemory::output(size_t port) {
  if (const int64_t shared = alias_of(plan_, port); shared >= 0) return input(static_cast<size_t>(shared));
  std::unique_ptr<CudaBuffer>& buffer = outputs_[port];
  if (buffer == nullptr) {
    buffer = std::make_unique<CudaBuffer>(code().context(), port_bytes(plan_, plan_.outputs[port]), "an output");
  }
  return buffer->address();
}

uint64_t CudaRunMemory::extra(size_t bytes) {
  const CudaContext& context = code().context();
  extras_.push_back(std::make_unique<CudaBuffer>(context, std::max<size_t>(bytes, 1), "the state of a loop"));
  // compute-sanitizer's initcheck reads what a graph copies when the graph is launched, before its kernels have run.
  context.check(context.driver().set_d8_async(extras_.back()->address(), 0, extras_.back()->size(), context.stream()),
                "cuMemsetD8Async");
  context.synchronize();
  return extras_.back()->address();
}

size_t CudaRunMemory::bytes() const {
  size_t bytes = arena_.size() + counters_.size();
  for (const auto* list : {&inputs_, &outputs_, &extras_}) {
    for (const auto& buffer : *list) bytes += buffer == nullptr ? 0 : buffer->size();
  }
  return bytes;
}

CudaCallersMemory::CudaCallersMemory(CudaCode& code, const Plan& plan, std::span<const uint64_t> addresses)
    : CudaMemory(code),
      addresses_(addresses),
      inputs_(plan.inputs.size()),
      workspace_(addresses.back()),
      end_(addresses.back()) {
  take(static_cast<size_t>(plan.arena_bytes));
  counters_ = take(static_cast<size_t>(code.counter_bytes()));
}

uint64_t CudaCallersMemory::take(size_t bytes) {
  const uint64_t begin = end_;
  end_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
  return begin;
}

}  // namespace heddle::runtime
