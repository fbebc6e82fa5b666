#include "emulator/driver/observer.h"

#include <atomic>

#include "emulator/driver/driver.h"

namespace heddle::emulator {
namespace {

std::atomic<const Observer*> current{nullptr};
thread_local int depth = 0;
thread_local uint32_t correlation_of_thread = 0;

}  // namespace

const Observer* observer() {
  return current.load(std::memory_order_acquire);
}

ApiCall::ApiCall(uint32_t call) : call_(call) {
  if (depth++ > 0) return;
  observer_ = observer();
  correlation_of_thread = observer_ == nullptr ? 0 : observer_->enter(call);
}

ApiCall::~ApiCall() {
  --depth;
  if (observer_ != nullptr) observer_->exit(call_, correlation_of_thread);
}

uint32_t ApiCall::correlation() {
  return correlation_of_thread;
}

}  // namespace heddle::emulator

using namespace heddle::emulator;

// Null: nobody wants to know any longer. The observer stays valid for ever.
HEDDLE_EXPORT void heddle_cuda_emulator_observe(const Observer* observer) {
  current.store(observer, std::memory_order_release);
}
