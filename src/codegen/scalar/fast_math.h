#pragma once

#include <optional>
#include <string>
#include <vector>

#include "schedule/expr/expr.h"

namespace heddle::codegen {

// A function of one value. Its template form function<Out>(low, high) computes the function of two neighbouring values
// and rounds both results to 16 bits.
struct PackForm {
  const char* function;
  schedule::ExprId argument;
};
std::optional<PackForm> pack_form_of(const schedule::ExprPool& pool, schedule::ExprId id);

// A replacement for an operation, with fewer instructions. It consists of a format string and the one or two values
// whose texts are the first arguments of the format. The last argument of the format is the vector width.
struct ShortForm {
  std::string format;  // "tile::fast::divide({0}, {1})", "tile::splat<{2}>(1.0f) / {0}"
  std::vector<schedule::ExprId> arguments;
};
// The short form of an operation on a GPU, or nullopt. `fast`: all users of the value round it to 16 bits or fewer.
// Otherwise, the short form keeps the precision of f32, with two exceptions: `rounded`, the value that is stored in 16
// bits, and operands of `rounded` for which the short form loses little precision.
std::optional<ShortForm> short_form_of(const schedule::ExprPool& pool, schedule::ExprId id, bool fast,
                                       std::optional<schedule::ExprId> rounded);

}  // namespace heddle::codegen
