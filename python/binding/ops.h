#pragma once

#include <nanobind/nanobind.h>

namespace heddle::python {

// Registers the Python module heddle.ops: single operators on a GPU.
void register_ops(nanobind::module_& module);

}  // namespace heddle::python
