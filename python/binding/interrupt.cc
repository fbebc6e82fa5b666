#include "interrupt.h"

#include <utility>

namespace nb = nanobind;

namespace heddle::python {
namespace {

unsigned long main_thread = 0;

}  // namespace

void find_main_thread() {
  main_thread = nb::cast<unsigned long>(nb::module_::import_("threading").attr("main_thread")().attr("ident"));
}

bool Interrupts::is_main_thread() {
  return PyThread_get_thread_ident() == main_thread;
}

bool Interrupts::asked() {
  const nb::gil_scoped_acquire gil;
  if (!raised_ && PyErr_CheckSignals() != 0) raised_.emplace();
  return raised_.has_value();
}

void Interrupts::raise_if_pending() {
  if (is_watching_ && !raised_ && PyErr_CheckSignals() != 0) raised_.emplace();
  raise_if_any();
}

void Interrupts::raise_if_any() {
  if (!raised_) return;
  nb::python_error raised = std::move(*raised_);
  raised_.reset();
  throw raised;
}

}  // namespace heddle::python
