#pragma once

#include <string>

#include "lang/ir/kernel.h"

// The C++ types and literals of CPU kernels. A value of type i1 is a tile::mask<4, W>; a pointer is an integer address.
namespace heddle::lang::cpu {

// The type of a vec's lanes: "float", "int32_t". Narrow floats are computed as float. i1 has no lane type.
std::string lane_type(const Type& type);
// The element type of buffers: int32_t for a mask, else the lane type.
std::string buffer_type(const Type& type);
int64_t buffer_size(const Type& type);  // bytes per element
// The type of an element in memory: "half", "uint8_t".
std::string memory_type(Element element);

bool is_mask(const Type& type);
// True if arithmetic on this type rounds its results to a type narrower than the lanes.
bool is_rounded(const Type& type);

// The C++ text of a constant: "float(0x1.8p+1f)", "int32_t(-3)", "mask<4, 1>{{-1}}".
std::string literal(const Attribute& value, const Type& type);

}  // namespace heddle::lang::cpu
