#pragma once

#include <nanobind/nanobind.h>

namespace heddle::python {

// What the backend of torch.compile calls: programs of compiled parts and of PyTorch's operators, and the versions of
// weights.
void register_graph(nanobind::module_& module);

}  // namespace heddle::python
