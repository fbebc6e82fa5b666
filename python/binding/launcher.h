#pragma once

#include <nanobind/nanobind.h>

namespace heddle::python {

// Registers heddle._core.tile.Launcher, the base class of Python kernels. A repeated call of `kernel[grid](arguments)`
// with arguments of the same kinds runs no Python code. The first call with arguments of these kinds goes to the method
// `run` of the class, which finds the kernel's instance and launches it. The attribute `record` of the method's result
// tells the launcher how to repeat the launch. The launcher itself decides nothing about the meaning of a launch.
void register_launcher(nanobind::module_& module);

}  // namespace heddle::python
