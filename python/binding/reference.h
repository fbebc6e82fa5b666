#pragma once

#include <nanobind/nanobind.h>

namespace heddle::python {

// evaluate(): textual IR by the reference evaluator.
void register_reference(nanobind::module_& module);

}  // namespace heddle::python
