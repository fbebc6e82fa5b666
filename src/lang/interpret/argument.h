#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lang/ir/kernel.h"

namespace heddle::lang {

// The value of an argument of a kernel. Pointers are addresses.
struct Argument {
  int64_t integer = 0;
  double number = 0;

  static Argument of(int64_t value) { return {value, static_cast<double>(value)}; }
  static Argument of_number(double value) { return {0, value}; }
  static Argument of(const void* pointer) { return of(static_cast<int64_t>(reinterpret_cast<uintptr_t>(pointer))); }
};

// An argument as a kernel's text reads it: 8 bytes, with a value of the type of its parameter.
uint64_t argument_word(const Type& type, const Argument& argument);

// The arguments as a kernel's text reads them: 8 bytes each, in the order of its parameters. Throws kInvalidArgument if
// there are too few or too many.
std::vector<uint64_t> argument_words(const Kernel& kernel, std::span<const Argument> arguments);

}  // namespace heddle::lang
