#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "array.h"

namespace heddle::python {

enum class Use : uint8_t { kRead, kWrite };

// Returns one operand of a single operator. `device` is the GPU of the operator's earlier operands (kHost before the
// first operand); the call sets it to this operand's GPU. Throws kInvalidInput, naming `where`, if the array is in host
// memory or on another GPU, or if `use` is kWrite and the memory is read-only.
Array gpu_operand(nanobind::handle object, const std::string& where, void* stream, int& device, Use use = Use::kRead);

// The strides of an array in elements. For dense arrays, whose `strides` are empty, computes them from the shape.
std::vector<int64_t> strides_of(const Array& array);

}  // namespace heddle::python
