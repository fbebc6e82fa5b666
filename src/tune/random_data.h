#pragma once

#include <cstdint>
#include <vector>

#include "heddle/dtype.h"

namespace heddle::tune {

// Operands for timing: floats uniform in [-1, 1) (never zeros: those need less power and run faster on some devices),
// bytes of either sign, booleans; wider integers are zero, since they may be indices.
void fill_random(void* data, DType dtype, int64_t count, uint64_t seed);

// Elements of any fixed-size type as double.
double as_double(const void* element, DType dtype);
std::vector<double> as_doubles(const void* data, DType dtype, int64_t count);

// Of the finite values; 0 of none.
double root_mean_square(const std::vector<double>& values);

}  // namespace heddle::tune
