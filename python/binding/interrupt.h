#pragma once

#include <nanobind/nanobind.h>

#include <optional>
#include <type_traits>

#include "base/thread/cancel.h"

namespace heddle::python {

// Runs Python's signal handlers while a thread works or waits without the GIL. An exception from a handler, such as
// KeyboardInterrupt, cancels the work. Python runs signal handlers on the main thread only, so on other threads this
// class does nothing.
class Interrupts : public Cancellation {
 public:
  Interrupts() : is_watching_(is_main_thread()) {}
  // Returns the cancellation to install for the work; null if the work cannot be interrupted.
  Cancellation* cancellation() { return is_watching_ ? this : Cancellation::current(); }
  // Raises the exception that a signal handler has raised, if any. Call it with the GIL after the work has ended.
  void raise_if_any();
  // First runs the handlers of pending signals, then acts as raise_if_any(). Call it after the work has failed, since a
  // signal that is still pending may have caused the failure.
  void raise_if_pending();

 private:
  static bool is_main_thread();
  bool asked() override;

  const bool is_watching_;
  std::optional<nanobind::python_error> raised_;
};

// Calls `work` without the GIL and returns its result. Raises any exception that a signal handler raises meanwhile.
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
    // A signal such as Ctrl-C reaches the compiler's process, too. The compiler then ends, which looks like a compiler
    // failure.
    interrupts.raise_if_pending();
    throw;
  }
}

// Like interruptible(work), for work that another thread may cancel through `by_others`. If `by_others` is null, this
// is interruptible(work).
template <typename Work>
auto interruptible(Cancellation* by_others, const Work& work) {
  if (by_others == nullptr) return interruptible(work);
  const nanobind::gil_scoped_release free;
  const CancelScope scope(by_others);
  return work();
}

// Records which thread is the main thread. Called once, when the module is loaded.
void find_main_thread();

}  // namespace heddle::python
