#pragma once

#include <array>
#include <functional>
#include <string>

#include "lang/interpret/number.h"
#include "lang/ir/kernel.h"

// Messages of kernels, the same wherever the kernels run.
namespace heddle::lang {

// "softmax.py:9: `load` in program (1, 0, 0), element 7"; -1: leaves out the element.
std::string program_place(const Kernel& kernel, const Op& op, const std::array<int64_t, 3>& program,
                          int64_t element = -1);

// The lines of `print` for one of its operands, one per element. Without operands there is one line.
void print_values(const Kernel& kernel, const Op& op, size_t operand, const std::array<int64_t, 3>& program,
                  const Cells& values, const std::function<void(const std::string&)>& print);

// Throws kValueOutOfRange: an `assert` does not hold.
[[noreturn]] void fail_assertion(const Kernel& kernel, const Op& op, const std::array<int64_t, 3>& program,
                                 int64_t element);

}  // namespace heddle::lang
