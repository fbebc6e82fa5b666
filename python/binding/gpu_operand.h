#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "array.h"

namespace heddle::python {

enum class Use : uint8_t { kRead, kWrite };

// An operand of a single operator. `device`: that of the operands before it, kHost for the first one; becomes its own.
// Throws kInvalidInput, naming `where`, for an array in host memory or on another GPU, or if read-only memory would be
// written.
Array gpu_operand(nanobind::handle object, const std::string& where, void* stream, int& device, Use use = Use::kRead);

// In elements, of dense arrays too.
std::vector<int64_t> strides_of(const Array& array);

}  // namespace heddle::python
