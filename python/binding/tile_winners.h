#pragma once

#include <nanobind/nanobind.h>

namespace heddle::python {

// Registers heddle._core.tile.find_winner and store_winner. They read and write the configurations that
// heddle.tile.autotune chose, in the user's tuning database.
void register_tile_winners(nanobind::module_& tile);

}  // namespace heddle::python
