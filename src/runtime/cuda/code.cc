#include "runtime/cuda/code.h"

#include <algorithm>

#include "base/check.h"
#include "runtime/cuda/launch.h"
#include "target/cuda_occupancy.h"

namespace heddle::runtime {
namespace {

[[noreturn]] void damaged(const std::string& why) {
  fail(ErrorCode::kDamagedArtefact, "plan", why, "Compile the model again");
}

}  // namespace

CudaNumbers::CudaNumbers(const CudaContext& context) {
  for (int64_t i = 0; i < kMost; ++i) host_.insert(host_.end(), {i, 0});
  host_.insert(host_.end(), {1, 0});
  memory_ = std::make_unique<CudaBuffer>(context, bytes(), "the numbers of a loop");
  memory_->write(host_.data(), bytes());
}

uint64_t CudaNumbers::device(int64_t number) const {
  HEDDLE_CHECK(number >= 0 && number < kMost, "iteration {}", number);
  return memory_->address() + static_cast<uint64_t>(kApart * number) * sizeof(int64_t);
}

uint64_t CudaNumbers::one() const {
  return memory_->address() + static_cast<uint64_t>(kApart * kMost) * sizeof(int64_t);
}

CudaCode::CudaCode(std::shared_ptr<const CudaContext> context, const Plan& plan, const Interpreter* interpreter)
    : context_(std::move(context)), constants_(CudaConstants::of(context_)) {
  destroy_data_of_graphs();
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
        if (const std::string why = reject_waiting(launch, context_->target()); !why.empty()) {
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

uint64_t CudaCode::constant(const Tensor& tensor) {
  CudaConstants::Place place = constants_->place(tensor);
  const std::lock_guard lock(mutex_);
  if (place.chunk != nullptr) chunks_.insert(std::move(place.chunk));
  return place.address;
}

const CudaNumbers& CudaCode::numbers() {
  const std::lock_guard lock(mutex_);
  if (numbers_ == nullptr) numbers_ = std::make_unique<CudaNumbers>(*context_);
  return *numbers_;
}

size_t CudaCode::constant_bytes() const {
  const std::lock_guard lock(mutex_);
  size_t bytes = numbers_ == nullptr ? 0 : numbers_->bytes();
  for (const auto& chunk : chunks_) bytes += chunk->memory.size();
  return bytes;
}

}  // namespace heddle::runtime
