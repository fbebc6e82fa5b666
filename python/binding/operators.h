#pragma once

#include <nanobind/nanobind.h>

#include <map>
#include <string>

#include "heddle/operators.h"

namespace heddle::python {

// Converts heddle.tile.Operator objects to operators, keyed by the nodes that they implement. The compiler may call
// these operators from any thread, without holding the GIL. An exception raised in Python becomes an Error that names
// the node.
std::map<std::string, Operator> operators_of(nanobind::handle operators);

}  // namespace heddle::python
