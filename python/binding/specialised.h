#pragma once

#include <nanobind/nanobind.h>

namespace heddle::python {

// Registers Specialised, an operator of PyTorch that is compiled for each signature of its arguments.
void register_specialised(nanobind::module_& module);

}  // namespace heddle::python
