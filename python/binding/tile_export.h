#pragma once

#include <nanobind/nanobind.h>

namespace heddle::python {

// What heddle.tile.tools.compile makes files of: heddle._core.tile.export.
void register_tile_export(nanobind::module_& tile);

}  // namespace heddle::python
