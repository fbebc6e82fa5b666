#pragma once

#include <map>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace heddle::ir {

// The kind of kernel or plan step that a set of nodes becomes.
enum class GroupKind : uint8_t {
  kStitch,       // memory-bound nodes in one generated kernel
  kContraction,  // prologue + template (dot, conv, window) + epilogue
  kAttention,    // product, softmax of values computed from it, product; the anchor is the second product
  kBackToBack,   // two contractions; the second, which is the anchor, reads the result of the first
  kControl,      // a loop or an if, whose bodies are themselves grouped
  kTile,         // the kernels of a tile-language program; the anchor is the node that calls it
  kReference,    // the reference evaluator runs it
};
std::string_view to_string(GroupKind kind);

// The location of a value inside the memory of a larger value, its host.
struct Placement {
  ValueId host = 0;
  Shape shape;                 // shape of the host
  std::vector<int64_t> start;  // the position of the value's first element in the host, per dimension
  bool operator==(const Placement&) const = default;
};
using Placements = std::map<ValueId, Placement>;

struct Group {
  GroupKind kind;
  std::vector<NodeId> nodes;            // topological; constants and parameters belong to no group
  NodeId anchor = 0;                    // the contraction (of two, the second) or the control node
  std::vector<ValueId> inputs;          // values computed outside the group, in order of first use (constants included)
  std::vector<ValueId> outputs;         // values used outside the group
  Placements placed = {};               // inputs and outputs stored inside another value's memory
  std::vector<std::string> notes = {};  // for `explain`
};

// Two products with a softmax between them. They may become one group (schedule/attention/form.h finds them).
struct Attention {
  NodeId scores_product = 0, values_product = 0;
  std::vector<NodeId> inside;  // nodes that depend on the first product, up to the second one or a division after it
  std::vector<NodeId> views;   // layout changes of both products' operands, applied by the kernel's views
  ValueId result = 0;          // the result of the second product, or of the division
};

// Records why two nodes or groups were fused or not. `explain` prints it.
struct Decision {
  bool yes;
  std::string rule;  // "epilogue", "stitch", ...
  std::string what;  // "add (/encoder/Add) into dot (/encoder/MatMul)"
  std::string reason;
};

// The name of a node in decisions: "add (/encoder/Add)".
std::string text_of_node(const Graph& graph, const Node& node);

struct Grouping {
  std::vector<Group> groups;  // topological
  std::vector<Decision> decisions;
};

}  // namespace heddle::ir
