#pragma once

#include <nanobind/nanobind.h>

namespace heddle::python {

// heddle._core.tile.Launcher, from which kernels in Python derive: `kernel[grid](arguments)` without a call of Python
// where such arguments were launched before. The first time `run` of the class launches, finds the instance, and says
// by its result's `record` what further launches are: nothing of what a launch means is decided here.
void register_launcher(nanobind::module_& module);

}  // namespace heddle::python
