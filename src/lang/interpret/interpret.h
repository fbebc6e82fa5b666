#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "lang/interpret/argument.h"
#include "lang/interpret/memory.h"
#include "lang/ir/kernel.h"

namespace heddle::lang {

struct InterpretOptions {
  std::vector<Allocation> allocations = {};            // if empty, accesses are not checked
  bool checked = false;                                // masked lanes without `other` are poisoned, races are reported
  std::function<void(const std::string&)> print = {};  // receives the lines that `print` writes
  int64_t most_trips = int64_t{1} << 26;               // most iterations of a `while`; more count as an infinite loop
};

// Runs a verified kernel for each program of the grid, one after another. The interpreter defines the meaning of the
// tile IR. Floats are computed in double and rounded to their type after each op. A matrix product is rounded once,
// after its sum. For an error such as a failed assertion, throws kValueOutOfRange with the location in the user's file,
// the program and the element. Throws kUnsupportedOperator for ops that only a GPU can run.
void interpret(const Kernel& kernel, std::array<int64_t, 3> grid, std::span<const Argument> arguments,
               const InterpretOptions& options = {});

}  // namespace heddle::lang
