#pragma once

#include <optional>
#include <string>
#include <vector>

#include "schedule/expr/expr.h"

namespace heddle::codegen {

// A function of one value with a form that also rounds two neighbouring results to 16 bits: function<Out>(low, high).
struct PackForm {
  const char* function;
  schedule::ExprId argument;
};
std::optional<PackForm> pack_form_of(const schedule::ExprPool& pool, schedule::ExprId id);

// An expression in fewer instructions: one or two values, and a format for their texts. The format's last argument is
// the vector width.
struct ShortForm {
  std::string format;  // "tile::fast::divide({0}, {1})", "tile::splat<{2}>(1.0f) / {0}"
  std::vector<schedule::ExprId> arguments;
};
// The short form of an operation on a GPU. `fast`: its users are rounded to 16 bits or fewer. Otherwise it keeps the
// precision of f32, except for `rounded`, the value that is stored in 16 bits, and values before it whose short form
// loses little.
std::optional<ShortForm> short_form_of(const schedule::ExprPool& pool, schedule::ExprId id, bool fast,
                                       std::optional<schedule::ExprId> rounded);

}  // namespace heddle::codegen
