#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lang/ir/kernel.h"

namespace heddle::lang {

// The value of a kernel argument. Pointers are stored as addresses in `integer`.
struct Argument {
  int64_t integer = 0;
  double number = 0;

  static Argument of(int64_t value) { return {value, static_cast<double>(value)}; }
  static Argument of_number(double value) { return {0, value}; }
  static Argument of(const void* pointer) { return of(static_cast<int64_t>(reinterpret_cast<uintptr_t>(pointer))); }
};

// Encodes an argument in the 8-byte format that a compiled kernel reads. The value is stored in the parameter's type.
uint64_t argument_word(const Type& type, const Argument& argument);

// Encodes all arguments of a kernel, 8 bytes each, in the order of its parameters. Throws kInvalidArgument if there are
// too few or too many arguments.
std::vector<uint64_t> argument_words(const Kernel& kernel, std::span<const Argument> arguments);

}  // namespace heddle::lang
