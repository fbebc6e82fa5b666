#pragma once

#include <array>
#include <functional>
#include <string>

#include "lang/interpret/number.h"
#include "lang/ir/kernel.h"

// Messages of kernels. They are the same on every device.
namespace heddle::lang {

// Returns the location of an op, for messages: "softmax.py:9: `load` in program (1, 0, 0), element 7". element = -1
// omits the element.
std::string program_place(const Kernel& kernel, const Op& op, const std::array<int64_t, 3>& program,
                          int64_t element = -1);

// Prints the lines of a `print` op for one of its operands: one line per element. A `print` without operands has one
// line.
void print_values(const Kernel& kernel, const Op& op, size_t operand, const std::array<int64_t, 3>& program,
                  const Cells& values, const std::function<void(const std::string&)>& print);

// Throws kValueOutOfRange for a failed `assert`.
[[noreturn]] void fail_assertion(const Kernel& kernel, const Op& op, const std::array<int64_t, 3>& program,
                                 int64_t element);

}  // namespace heddle::lang
