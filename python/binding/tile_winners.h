#pragma once

#include <nanobind/nanobind.h>

namespace heddle::python {

// Configurations that heddle.tile.autotune chose, in the user's tuning database: heddle._core.tile.find_winner,
// store_winner.
void register_tile_winners(nanobind::module_& tile);

}  // namespace heddle::python
