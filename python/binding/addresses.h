#pragma once

#include <nanobind/nanobind.h>

namespace heddle::python {

// Registers Addresses, which finds in microseconds whether tensors lie where they lay in the last step.
void register_addresses(nanobind::module_& module);

}  // namespace heddle::python
