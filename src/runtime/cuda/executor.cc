#include "runtime/cuda/executor.h"

#include <exception>

#include "base/check.h"
#include "runtime/cuda/launch.h"

namespace heddle::runtime {

CudaExecutor::CudaExecutor(std::shared_ptr<const Plan> plan, std::shared_ptr<ThreadPool> pool,
                           std::shared_ptr<const Interpreter> interpreter, int device, bool callers_memory)
    : Executor(std::move(plan)),
      pool_(std::move(pool)),
      interpreter_(std::move(interpreter)),
      context_(CudaContext::of_device(device, made_for_hip(*plan_) ? GpuApi::kHip : GpuApi::kCuda)),
      code_(std::make_shared<CudaCode>(context_, *plan_, interpreter_.get())) {
  // The first state is made here, so that a model that does not fit says so when it is loaded.
  if (!callers_memory) free_.push_back(make_state());
}

std::unique_ptr<CudaRunState> CudaExecutor::make_state() const {
  auto state = std::make_unique<CudaRunState>(*code_, *plan_, interpreter_.get(), *pool_, *outputs_);
  graphs_ = state->graphs();
  pinned_bytes_ = state->pinned_bytes();
  state_bytes_ = state->device_bytes();
  return state;
}

const CudaEnqueuer& CudaExecutor::enqueuer() const {
  std::call_once(enqueuer_made_, [&] {
    context_->make_current();
    enqueuer_ = std::make_unique<CudaEnqueuer>(code_, *plan_);
  });
  return *enqueuer_;
}

int64_t CudaExecutor::bytes_per_run() const {
  auto bytes = static_cast<int64_t>(pinned_bytes_);
  for (const Port& port : plan_->outputs) bytes += plan_->buffers[port.buffer].bytes;
  return bytes;
}

uint64_t CudaExecutor::device_bytes() const {
  const std::lock_guard lock(mutex_);
  return code_->constant_bytes() + (free_.size() + taken_) * state_bytes_;
}

// States are made one at a time: two that each fit by themselves must not refuse each other half of their memory. What
// one holder gave up while another state was being made may be what that lacked.
std::unique_ptr<CudaRunState> CudaExecutor::take_state() const {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return !free_.empty() || !making_; });
    if (!free_.empty()) {
      ++taken_;
      std::unique_ptr<CudaRunState> state = std::move(free_.back());
      free_.pop_back();
      return state;
    }
    const bool alone = taken_ == 0;
    const uint64_t given_back = given_back_;
    making_ = true;
    lock.unlock();
    std::unique_ptr<CudaRunState> state;
    std::exception_ptr why;
    bool wants_memory = false;
    try {
      state = make_state();
    } catch (const Error& error) {
      wants_memory = error.code() == ErrorCode::kOutOfMemory;
      why = std::current_exception();
    } catch (...) {
      why = std::current_exception();
    }
    lock.lock();
    making_ = false;
    changed_.notify_all();
    if (state != nullptr) {
      ++taken_;
      return state;
    }
    if (alone || !wants_memory) std::rethrow_exception(why);
    changed_.wait(lock, [&] { return given_back_ != given_back; });
  }
}

template <typename Use>
auto CudaExecutor::with_state(Use&& use) const {
  std::unique_ptr<CudaRunState> state = take_state();
  const auto give_back = [&] {
    {
      const std::lock_guard lock(mutex_);
      --taken_;
      ++given_back_;
      if (state != nullptr) free_.push_back(std::move(state));
    }
    changed_.notify_all();
  };
  try {
    auto result = use(*state);
    give_back();
    return result;
  } catch (...) {
    // What an interrupted run left on the stream, or in counters, must not reach the next one.
    state.reset();
    give_back();
    throw;
  }
}

std::vector<Tensor> CudaExecutor::run(std::span<const Tensor> inputs, const Observer& observe,
                                      std::span<const Tensor> into) const {
  HEDDLE_CHECK(inputs.size() == plan_->inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    HEDDLE_CHECK(inputs[i].bytes() == static_cast<size_t>(plan_->buffers[plan_->inputs[i].buffer].bytes));
  }
  return with_state([&](CudaRunState& state) {
    return observe ? state.run_observed(inputs, observe, into) : state.run(inputs, into);
  });
}

std::vector<double> CudaExecutor::device_seconds(std::span<const Tensor> inputs, int runs, bool cold) const {
  if (!cold) return device_seconds(inputs, runs, CudaRunState::Before());
  context_->make_current();
  CudaFlush flush(*context_);
  return device_seconds(inputs, runs, [&](CudaDriver::Handle stream) { flush.enqueue(stream); });
}

std::vector<double> CudaExecutor::device_seconds(std::span<const Tensor> inputs, int runs,
                                                 const std::function<void(CudaDriver::Handle stream)>& before) const {
  return with_state([&](CudaRunState& state) { return state.time(inputs, runs, before); });
}

void CudaExecutor::repeat(std::span<const Tensor> inputs, const std::function<void(const Repeat&)>& use) const {
  with_state([&](CudaRunState& state) {
    state.repeat(inputs, use);
    return true;
  });
}

std::vector<double> CudaExecutor::step_seconds(std::span<const Tensor> inputs, int runs) const {
  return with_state([&](CudaRunState& state) { return state.time_steps(inputs, runs); });
}

}  // namespace heddle::runtime
