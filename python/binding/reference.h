#pragma once

#include <nanobind/nanobind.h>

namespace heddle::python {

// Registers evaluate(), which runs textual IR in the reference evaluator.
void register_reference(nanobind::module_& module);

}  // namespace heddle::python
