#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "heddle/dtype.h"

namespace heddle::tune {

// Operands for timing. Floats are uniform in [-1, 1), since zeros need less power and run faster on some devices; bytes
// have either sign; booleans are random; wider integers are zero, since they may be indices.
void fill_random(void* data, DType dtype, int64_t count, uint64_t seed);

// Elements of any fixed-size type as double.
double as_double(const void* element, DType dtype);
std::vector<double> as_doubles(const void* data, DType dtype, int64_t count);

// Describes a difference of results that is too large, relative to their size, to come from the order of additions; ""
// if there is none. Integers may differ by one, which earlier rounding explains.
std::string difference(const std::vector<double>& expected, const std::vector<double>& got, DType dtype);

}  // namespace heddle::tune
