#pragma once

#include <nanobind/nanobind.h>

namespace heddle::python {

// Registers heddle.ops.attention in the Python module.
void register_attention(nanobind::module_& module);

}  // namespace heddle::python
