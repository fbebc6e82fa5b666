#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "heddle/dtype.h"

namespace heddle::tune {

// Operands for timing: floats uniform in [-1, 1) (never zeros: those need less power and run faster on some devices),
// bytes of either sign, booleans; wider integers are zero, since they may be indices.
void fill_random(void* data, DType dtype, int64_t count, uint64_t seed);

// Elements of any fixed-size type as double.
double as_double(const void* element, DType dtype);
std::vector<double> as_doubles(const void* data, DType dtype, int64_t count);

// How results differ by more than two ways to add the same terms may, relative to their size; "" where they do not.
// Integers may differ by one, which a rounding before them explains.
std::string difference(const std::vector<double>& expected, const std::vector<double>& got, DType dtype);

}  // namespace heddle::tune
