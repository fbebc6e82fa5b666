#pragma once

#include <nanobind/nanobind.h>

namespace heddle::python {

// Registers the functions that the backend of torch.compile calls. They cover programs that mix compiled subgraphs with
// PyTorch operators, and the version counters of weights.
void register_graph(nanobind::module_& module);

}  // namespace heddle::python
