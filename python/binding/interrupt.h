#pragma once

#include <nanobind/nanobind.h>

#include <optional>
#include <type_traits>

#include "base/thread/cancel.h"

namespace heddle::python {

// Runs Python's signal handlers while a thread waits for work without the GIL. An exception from a handler, such as
// KeyboardInterrupt, cancels the work. Handlers run only on the main thread; on others this does nothing.
class Interrupts : public Cancellation {
 public:
  Interrupts() : is_watching_(is_main_thread()) {}
  // Null if the work cannot be interrupted.
  Cancellation* cancellation() { return is_watching_ ? this : Cancellation::current(); }
  // Call with the GIL when the work has ended: raises what a handler raised.
  void raise_if_any();
  // The same after a failure, which a signal that has not been handled yet may have caused.
  void raise_if_pending();

 private:
  static bool is_main_thread();
  bool asked() override;

  const bool is_watching_;
  std::optional<nanobind::python_error> raised_;
};

// Calls `work` without the GIL. Raises what signal handlers raise meanwhile.
template <typename Work>
auto interruptible(const Work& work) {
  Interrupts interrupts;
  const auto call = [&] {
    const nanobind::gil_scoped_release free;
    const CancelScope scope(interrupts.cancellation(), CancelScope::Asks::kYes);
    return work();
  };
  try {
    if constexpr (std::is_void_v<decltype(work())>) {
      call();
      interrupts.raise_if_any();
    } else {
      auto result = call();
      interrupts.raise_if_any();
      return result;
    }
  } catch (...) {
    // A compiler that also got the signal looks like one that failed.
    interrupts.raise_if_pending();
    throw;
  }
}

// The same for work that another thread may cancel.
template <typename Work>
auto interruptible(Cancellation* by_others, const Work& work) {
  if (by_others == nullptr) return interruptible(work);
  const nanobind::gil_scoped_release free;
  const CancelScope scope(by_others);
  return work();
}

// Called once, when the module is loaded.
void find_main_thread();

}  // namespace heddle::python
