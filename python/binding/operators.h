#pragma once

#include <nanobind/nanobind.h>

#include <map>
#include <string>

#include "heddle/operators.h"

namespace heddle::python {

// heddle.tile.Operator objects by the nodes that they are for, as the compiler asks them: from any thread, without the
// GIL. What they raise becomes an Error that names the node.
std::map<std::string, Operator> operators_of(nanobind::handle operators);

}  // namespace heddle::python
