#pragma once

#include <optional>
#include <string>
#include <vector>

#include "schedule/expr/expr.h"

namespace heddle::codegen {

// A function of one value that has a form which rounds two neighbours to 16 bits: function<Out>(low, high).
struct PackForm {
  const char* function;
  schedule::ExprId argument;
};
std::optional<PackForm> pack_form_of(const schedule::ExprPool& pool, schedule::ExprId id);

// An expression in fewer instructions: one or two values and a format for their texts, of which the last argument is
// the width of their vectors.
struct ShortForm {
  std::string format;  // "tile::fast::divide({0}, {1})", "tile::splat<{2}>(1.0f) / {0}"
  std::vector<schedule::ExprId> arguments;
};
// The short form of an operation on a GPU. `fast`: what it serves is rounded to 16 bits or fewer; else it keeps the
// precision of f32, but where it is `rounded`, the value that is stored in 16 bits, or loses little before that.
std::optional<ShortForm> short_form_of(const schedule::ExprPool& pool, schedule::ExprId id, bool fast,
                                       std::optional<schedule::ExprId> rounded);

}  // namespace heddle::codegen
