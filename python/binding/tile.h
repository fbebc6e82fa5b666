#pragma once

#include <nanobind/nanobind.h>

namespace heddle::python {

// heddle._core.tile: what heddle.tile, the front-end of the tile language, runs its kernels with.
void register_tile(nanobind::module_& module);

}  // namespace heddle::python
