#pragma once

#include <string>
#include <string_view>

#include "ir/graph.h"

namespace heddle::ir {

// The textual form (.hir), specified in docs/design/ir.md. print(parse(t)) is canonical; parse(print(g)) equals g.
struct PrintOptions {
  int64_t max_constant_elements = 16;  // larger constants print as dense<hash: ...> and do not parse; < 0: print all
  bool origins = true;
};
std::string print(const Graph& graph, const PrintOptions& options = {});

// Throws kInvalidIr with line, column, what was expected and what was found.
Graph parse(std::string_view text);

}  // namespace heddle::ir
