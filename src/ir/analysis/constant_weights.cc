#include "ir/analysis/constant_weights.h"

#include <fmt/format.h>

#include <algorithm>

namespace heddle::ir {

std::optional<std::string> constant_weights(const Graph& graph, const Node& dot) {
  const ValueId v = dot.inputs[1];
  const auto is_constant = [&](ValueId value) { return graph.constant_of(value) != nullptr; };
  std::string text(to_string(graph.dtype(v)));
  if (is_constant(v)) return text;
  const Node& node = graph.producer(v);
  if (node.op != Op::kDequantize || !std::all_of(node.inputs.begin(), node.inputs.end(), is_constant)) {
    return std::nullopt;
  }
  if (dot.attrs.ints("rhs_contract") != Ints{1} || !dot.attrs.ints("rhs_batch").empty()) return std::nullopt;
  for (const char* name : {"bits", "block", "k", "zero"}) text += fmt::format(" {}", node.attrs.integer(name));
  for (const ValueId input : node.inputs) {
    if (graph.shape(input).size() != 2) return std::nullopt;  // a table, which may differ
    text += fmt::format(" {}", to_string(graph.dtype(input)));
  }
  return text;
}

}  // namespace heddle::ir
