#pragma once

#include <nanobind/nanobind.h>

namespace heddle::python {

// Registers heddle._core.tile, with which heddle.tile (the front-end of the tile language) runs its kernels.
void register_tile(nanobind::module_& module);

}  // namespace heddle::python
