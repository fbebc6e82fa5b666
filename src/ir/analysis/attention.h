#pragma once

#include <optional>
#include <vector>

#include "ir/graph.h"

namespace heddle::ir {

// softmax(f(Q K^T)) V as nodes: a dot, elementwise nodes, a softmax over its last dimension, a dot.
struct Attention {
  NodeId scores_product = 0, values_product = 0;
  ValueId scores = 0;  // what the softmax reads; its two last dimensions are those of the first dot's result
  std::vector<NodeId>
      inside;  // what lies between the dots: elementwise nodes that depend on the first one, the softmax
};

// The attention whose last product is `product`; nullopt where it is none. Who else reads the values in between is not
// looked at.
std::optional<Attention> match_attention(const Graph& graph, NodeId product);

}  // namespace heddle::ir
