#include "runtime/cuda/code.h"

#include <algorithm>

#include "base/check.h"
#include "base/file/file.h"
#include "target/cuda_occupancy.h"

namespace heddle::runtime {
namespace {

constexpr size_t kAlign = 256;
// Constants share allocations of this size: the driver's own granularity is two megabytes.
constexpr size_t kChunk = size_t{2} << 20;

[[noreturn]] void damaged(const std::string& why) {
  fail(ErrorCode::kDamagedArtefact, "plan", why, "Compile the model again");
}

}  // namespace

CudaCode::CudaCode(std::shared_ptr<const CudaContext> context, const Plan& plan, const Interpreter* interpreter)
    : context_(std::move(context)) {
  std::map<std::string, Needs> needs;
  collect(plan, interpreter, needs);
  for (const Cubin& cubin : plan.cubins) {
    const auto& symbols = cubin.symbols;
    if (std::none_of(symbols.begin(), symbols.end(), [&](const std::string& s) { return needs.contains(s); })) continue;
    modules_.push_back(std::make_unique<CudaModule>(*context_, cubin.bytes));
    for (const std::string& symbol : cubin.symbols) {
      const auto found = needs.find(symbol);
      if (found == needs.end()) continue;
      functions_[symbol] = modules_.back()->function(symbol, found->second.shared_bytes, found->second.cluster);
    }
  }
  for (const auto& [symbol, need] : needs) {
    if (!functions_.contains(symbol)) damaged(fmt::format("no machine code has the kernel {}", symbol));
  }
}

void CudaCode::collect(const Plan& plan, const Interpreter* interpreter, std::map<std::string, Needs>& needs) {
  for (const Step& step : plan.steps) {
    if (const auto* kernels = std::get_if<CudaStep>(&step.action)) {
      counter_bytes_ = std::max(counter_bytes_, kernels->counter_bytes);
      for (const CudaLaunch& launch : kernels->launches) {
        if (const std::string why = reject_waiting(launch, context_->device().target); !why.empty()) {
          damaged(fmt::format("{}: {}", launch.symbol, why));
        }
        Needs& need = needs[launch.symbol];
        need.shared_bytes = std::max(need.shared_bytes, launch.shared_bytes);
        need.cluster = std::max(need.cluster, launch.cluster);
      }
    } else if (const auto* reference = std::get_if<ReferenceStep>(&step.action)) {
      HEDDLE_CHECK(interpreter != nullptr, "the plan needs an interpreter");
      prepared_[reference] = prepare(*interpreter, plan, *reference);
    } else if (const auto* loop = std::get_if<LoopStep>(&step.action)) {
      collect(*loop->body, interpreter, needs);
    } else if (const auto* branch = std::get_if<BranchStep>(&step.action)) {
      collect(*branch->then_body, interpreter, needs);
      collect(*branch->else_body, interpreter, needs);
    } else if (std::holds_alternative<KernelStep>(step.action)) {
      damaged("it has kernels for a CPU, but was made for a GPU");
    }
  }
}

uint64_t CudaCode::place(size_t bytes) {
  bytes = (bytes + kAlign - 1) / kAlign * kAlign;
  if (chunks_.empty() || chunks_.back()->size() - chunk_used_ < bytes) {
    chunks_.push_back(std::make_unique<CudaBuffer>(*context_, std::max(bytes, kChunk), "the weights"));
    chunk_used_ = 0;
  }
  const uint64_t address = chunks_.back()->address() + chunk_used_;
  chunk_used_ += bytes;
  return address;
}

uint64_t CudaCode::constant(const Tensor& tensor) {
  const std::lock_guard lock(mutex_);
  const auto [found, added] = constants_.try_emplace({tensor.data(), tensor.bytes()}, 0);
  if (!added || tensor.bytes() == 0) return found->second;
  try {
    found->second = place(tensor.bytes());
    chunks_.back()->write(tensor.data(), tensor.bytes(), found->second - chunks_.back()->address());
  } catch (...) {
    constants_.erase(found);
    throw;
  }
  release_pages(tensor.data(), tensor.bytes());
  return found->second;
}

size_t CudaCode::constant_bytes() const {
  const std::lock_guard lock(mutex_);
  size_t bytes = 0;
  for (const auto& chunk : chunks_) bytes += chunk->size();
  return bytes;
}

}  // namespace heddle::runtime
