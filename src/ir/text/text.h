#pragma once

#include <string>
#include <string_view>

#include "ir/graph.h"

namespace heddle::ir {

// The textual form (.hir) of graphs (docs/design/ir.md). print(parse(t)) is canonical; parse(print(g)) equals g.
struct PrintOptions {
  // Larger constants print as dense<hash: ...>, which does not parse; < 0: print all.
  int64_t max_constant_elements = 16;
  bool origins = true;
};
std::string print(const Graph& graph, const PrintOptions& options = {});

// Throws kInvalidIr with the line, the column, and the expected and actual text.
Graph parse(std::string_view text);

}  // namespace heddle::ir
