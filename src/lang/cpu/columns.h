#pragma once

#include <string>

#include "lang/cpu/loops.h"

namespace heddle::lang::cpu {

// True if all loads in the expression that computes a matrix are contiguous along its columns. The matrix is then
// computed column by column and transposed. Both extents must be multiples of 16, so that rows and columns are whole
// vectors for every type.
bool reads_columns(State& state, ValueId value);

// Generates code that writes a matrix for which reads_columns() is true to `buffer`, in row-major order.
void write_columns(State& state, Loops& loops, Writer& out, ValueId value, const std::string& buffer);

}  // namespace heddle::lang::cpu
