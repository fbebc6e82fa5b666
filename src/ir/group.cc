#include "ir/group.h"

#include <iterator>

#include "base/check.h"

namespace heddle::ir {

std::string_view to_string(GroupKind kind) {
  constexpr std::string_view kNames[] = {"stitch",  "contraction", "attention", "back_to_back",
                                         "control", "tile",        "reference"};
  HEDDLE_CHECK(static_cast<size_t>(kind) < std::size(kNames), "group kind {}", static_cast<int>(kind));
  return kNames[static_cast<size_t>(kind)];
}

std::string text_of_node(const Graph& graph, const Node& node) {
  std::string text(to_string(node.op));
  for (size_t i = 0; i < node.origins.size() && i < 2; ++i) {
    text += (i == 0 ? " (" : ", ") + graph.origin(node.origins[i]).node;
  }
  if (node.origins.size() > 2) text += ", ...";
  return node.origins.empty() ? text : text + ")";
}

}  // namespace heddle::ir
