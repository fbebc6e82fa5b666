#pragma once

#include <string>

#include "lang/ir/kernel.h"

// The C++ names of types and numbers in CPU kernels. A value of i1 is tile::mask<4, W>; a pointer is an address.
namespace heddle::lang::cpu {

// "float", "int32_t": the lane type of a vec. Narrow floats are computed in float. i1 has no lane type of its own.
std::string lane_type(const Type& type);
// The element type of buffers: the lane type, or int32_t for the lanes of a mask.
std::string buffer_type(const Type& type);
int64_t buffer_size(const Type& type);  // bytes per element
// "half", "uint8_t": the type of elements in memory.
std::string memory_type(Element element);

bool is_mask(const Type& type);
// True if results of arithmetic are rounded to a type narrower than their lanes.
bool is_rounded(const Type& type);

// "float(0x1.8p+1f)", "int32_t(-3)", "mask<4, 1>{{-1}}"
std::string literal(const Attribute& value, const Type& type);

}  // namespace heddle::lang::cpu
