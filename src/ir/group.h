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
  kAttention,    // a product, a softmax of values computed from it, a product; the anchor is the second product
  kBackToBack,   // two contractions, the second reads the first one's result; the anchor is the second
  kControl,      // a loop or an if, whose bodies are grouped in turn
  kTile,         // the kernels of a program of the tile language; the anchor calls it
  kReference,    // runs through the reference evaluator
};
std::string_view to_string(GroupKind kind);

// Where a value lies in the memory of a larger one, its host.
struct Placement {
  ValueId host = 0;
  Shape shape;                 // of the host
  std::vector<int64_t> start;  // of the value's first element there, by dimension
  bool operator==(const Placement&) const = default;
};
using Placements = std::map<ValueId, Placement>;

struct Group {
  GroupKind kind;
  std::vector<NodeId> nodes;            // topological; constants and parameters belong to no group
  NodeId anchor = 0;                    // the contraction (the second one where there are two), or the control node
  std::vector<ValueId> inputs;          // values made outside, in order of first use (constants included)
  std::vector<ValueId> outputs;         // values used outside
  Placements placed = {};               // inputs and outputs that lie in the memory of another value
  std::vector<std::string> notes = {};  // for `explain`
};

// Two products with a softmax between them, which may become one group (schedule/attention/form.h finds them).
struct Attention {
  NodeId scores_product = 0, values_product = 0;
  std::vector<NodeId> inside;  // nodes that depend on the first product, up to the second one or a division after it
  std::vector<NodeId> views;   // layout changes of the operands of both that the kernel reads through
  ValueId result = 0;          // of the second product or of that division
};

// Why two things were or were not fused; the material of `explain`.
struct Decision {
  bool yes;
  std::string rule;  // "epilogue", "stitch", ...
  std::string what;  // "add (/encoder/Add) into dot (/encoder/MatMul)"
  std::string reason;
};

struct Grouping {
  std::vector<Group> groups;  // topological
  std::vector<Decision> decisions;
};

}  // namespace heddle::ir
