#pragma once

#include <cstdint>
#include <vector>

#include "lang/ir/type.h"

// Numbers of the interpreter: floats as double, rounded to their type after each op; integers of every width as the
// int64_t that has their value (u64: their bits); pointers as addresses.
namespace heddle::lang {

union Cell {
  double f;
  int64_t i;
};
using Cells = std::vector<Cell>;

// The nearest value of a type, ties to even. What is too large for an f8 becomes its largest number, for others
// infinity.
double round_float(Element element, double value);
// The next value of the type toward zero.
double truncate_float(Element element, double value);
// The low bits of an integer, sign or zero extended as its type says. i1: the lowest bit.
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
// Truncates and saturates; NaN gives 0.
int64_t float_to_int(Element to, double value);
// The value of an integer in a float type, rounded once.
double int_to_float(Element from, int64_t value, Element to);

// The bits of a value in memory, in the low bytes; and back.
uint64_t encode(Element element, Cell value);
Cell decode(Element element, uint64_t bits);

// What a lane holds that nobody may use: NaN, or a number that is easy to recognise.
Cell poison(const Type& type);

}  // namespace heddle::lang
