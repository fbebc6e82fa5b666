#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "heddle/dtype.h"

namespace heddle::tune {

// Fills an operand with data for timing. Floats are uniform in [-1, 1), since zeros need less power and are faster on
// some devices. Bytes have both signs. Booleans are random. Wider integers are zero, since they may be indices.
void fill_random(void* data, DType dtype, int64_t count, uint64_t seed);

// Converts elements of any fixed-size type to double.
double as_double(const void* element, DType dtype);
std::vector<double> as_doubles(const void* data, DType dtype, int64_t count);

// Describes a difference between two results that is too large, relative to the size of the results, to be caused by
// the order of additions. "" if there is no such difference. Integers may differ by one, since values may be rounded
// before they are converted to integers.
std::string difference(const std::vector<double>& expected, const std::vector<double>& got, DType dtype);

}  // namespace heddle::tune
