#pragma once

#include <string>

#include "lang/ir/kernel.h"

// How the text of a CPU names types and numbers. A value of i1 is tile::mask<4, W>, a pointer an address.
namespace heddle::lang::cpu {

// "float", "int32_t": lanes of a vec. Narrow floats are computed in float; i1 has no lanes of its own.
std::string lane_type(const Type& type);
// The type of buffers: that of the lanes, int32_t for the lanes of a mask.
std::string buffer_type(const Type& type);
int64_t buffer_size(const Type& type);  // bytes of an element
// "half", "uint8_t": elements in memory.
std::string memory_type(Element element);

bool is_mask(const Type& type);
// Whether results of arithmetic are rounded to a narrower type than their lanes.
bool is_rounded(const Type& type);

// "float(0x1.8p+1f)", "int32_t(-3)", "mask<4, 1>{{-1}}"
std::string literal(const Attribute& value, const Type& type);

}  // namespace heddle::lang::cpu
