#pragma once

#include <cstdint>
#include <vector>

#include "lang/ir/type.h"

// Numbers in the interpreter. Floats are stored as doubles, rounded to their type after each op. Integers of every
// width are stored as the int64_t with equal value (for u64: with equal bits). Pointers are stored as addresses.
namespace heddle::lang {

union Cell {
  double f;
  int64_t i;
};
using Cells = std::vector<Cell>;

// Rounds to the nearest value of the type, ties to even. Overflow gives the largest number of an f8 type, and infinity
// for other types.
double round_float(Element element, double value);
// Rounds to a value of the type, toward zero.
double truncate_float(Element element, double value);
// The low bits of an integer, sign- or zero-extended according to the type. For i1, the lowest bit.
inline int64_t wrap_int(Element element, int64_t value) {
  switch (element) {
    case Element::kI1:
      return value & 1;
    case Element::kI8:
      return static_cast<int8_t>(value);
    case Element::kI16:
      return static_cast<int16_t>(value);
    case Element::kI32:
      return static_cast<int32_t>(value);
    case Element::kU8:
      return static_cast<uint8_t>(value);
    case Element::kU16:
      return static_cast<uint16_t>(value);
    case Element::kU32:
      return static_cast<uint32_t>(value);
    default:
      return value;
  }
}
// Truncates and saturates. NaN gives 0.
int64_t float_to_int(Element to, double value);
// Converts an integer to a float type, rounding once.
double int_to_float(Element from, int64_t value, Element to);

// encode() converts a value to its bits in memory, in the low bytes. decode() converts back.
uint64_t encode(Element element, Cell value);
Cell decode(Element element, uint64_t bits);

// The value of lanes that must not be used: NaN, or an easily recognised number.
Cell poison(const Type& type);

}  // namespace heddle::lang
