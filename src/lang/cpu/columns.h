#pragma once

#include <string>

#include "lang/cpu/loops.h"

namespace heddle::lang::cpu {

// True if all loads below a matrix are contiguous along its columns. The matrix is then read by columns and transposed.
// Both extents must be multiples of 16, so that they are whole vectors of any type.
bool reads_columns(State& state, ValueId value);

// Writes such a matrix to a buffer in row-major order.
void write_columns(State& state, Loops& loops, Writer& out, ValueId value, const std::string& buffer);

}  // namespace heddle::lang::cpu
