#pragma once

#include <nanobind/nanobind.h>

namespace heddle::python {

// heddle.ops.attention.
void register_attention(nanobind::module_& module);

}  // namespace heddle::python
