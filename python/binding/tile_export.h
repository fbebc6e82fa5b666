#pragma once

#include <nanobind/nanobind.h>

namespace heddle::python {

// Registers heddle._core.tile.export, the functions with which heddle.tile.tools.compile writes files.
void register_tile_export(nanobind::module_& tile);

}  // namespace heddle::python
