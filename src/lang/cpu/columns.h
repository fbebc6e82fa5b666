#pragma once

#include <string>

#include "lang/cpu/loops.h"

namespace heddle::lang::cpu {

// Whether neighbours in memory are neighbours of a column in all loads below a matrix: it is read by columns then, and
// transposed. Extents are whole vectors of any type.
bool reads_columns(State& state, ValueId value);

// Writes the elements of such a matrix to a buffer, by rows.
void write_columns(State& state, Loops& loops, Lines& out, ValueId value, const std::string& buffer);

}  // namespace heddle::lang::cpu
