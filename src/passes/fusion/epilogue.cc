#include <algorithm>
#include <queue>
#include <unordered_map>

#include "base/check.h"
#include "passes/fusion/context.h"

namespace heddle::passes {
namespace {

using ir::Node;
using ir::NodeId;
using ir::Op;
using ir::ValueId;
using Role = FusionContext::Role;

// Grows the epilogue of one anchor from its result outwards, in topological order.
class Epilogue {
 public:
  Epilogue(FusionContext& context, NodeId anchor) : c_(context), graph_(context.graph), anchor_(anchor) {
    const ValueId result = graph_.node(anchor).outputs[0];
    count_ = element_count(graph_.shape(result));
    inside_[result] = false;
    enqueue_users(result);
  }

  void grow() {
    while (!queue_.empty()) {
      const NodeId id = queue_.top();
      queue_.pop();
      if (c_.partition.same(id, anchor_) || c_.role[id] == Role::kEpilogue) continue;
      if (c_.role[id] != Role::kMemory && c_.role[id] != Role::kReference) continue;  // the next contraction
      std::string reason = refusal(id);
      if (reason.empty() && !join(id)) reason = "a path through other kernels leads back into it";
      c_.decide(reason.empty(), "epilogue", id, anchor_, reason.empty() ? accepted(id) : reason);
      if (reason.empty()) enqueue_users(graph_.node(id).outputs[0]);
    }
  }

 private:
  void enqueue_users(ValueId value) {
    for (NodeId user : c_.users[value]) {
      if (std::find(seen_.begin(), seen_.end(), user) != seen_.end()) continue;
      seen_.push_back(user);
      queue_.push(user);
    }
  }

  std::string accepted(NodeId id) const {
    return graph_.node(id).op == Op::kReshape || graph_.node(id).op == Op::kTranspose
               ? "changes the index of the store only"
               : "one element of the result decides one of it";
  }

  // Why a node cannot be in the epilogue; empty where it can.
  std::string refusal(NodeId id) const {
    const Node& node = graph_.node(id);
    if (c_.role[id] == Role::kReference) return "runs by the reference evaluator";
    const ValueId result = node.outputs[0];
    if (node.op == Op::kReshape || node.op == Op::kTranspose) {
      if (!c_.only_read_by(node.inputs[0], id)) return "its operand is needed in the old layout, too";
      return {};
    }
    if (!ir::is_elementwise(node.op)) return fmt::format("{} reads other elements of the result", to_string(node.op));
    if (element_count(graph_.shape(result)) != count_) return "it has more elements than the result";
    if (joins_stitches(node)) return "it is one stitch with what makes its other operand and with what reads it";
    for (ValueId v : node.inputs) {
      const auto found = inside_.find(v);
      if (found != inside_.end() && found->second) return "it computes in a permuted layout";
    }
    const bool trailing = c_.users[result].empty() || c_.is_output[result];
    if (node.op == Op::kCast && !trailing && size_of(graph_.dtype(result)) > size_of(graph_.dtype(node.inputs[0]))) {
      return widening_refusal(result);
    }
    return {};
  }

  // Whether a node joins two sides that would be one stitch with it: an operand that is made for it alone by
  // memory-bound nodes (a slice of a sequence, say), and readers that no epilogue can have. In the epilogue it would
  // leave a kernel on either side.
  bool joins_stitches(const Node& node) const {
    const std::vector<NodeId>& readers = c_.users[node.outputs[0]];
    const auto stays_outside = [&](NodeId id) {
      const Op op = graph_.node(id).op;
      return c_.role[id] == Role::kMemory && !ir::is_elementwise(op) && op != Op::kReshape && op != Op::kTranspose;
    };
    if (readers.empty() || !std::all_of(readers.begin(), readers.end(), stays_outside)) return false;
    const auto own = [&](ValueId v) {
      const NodeId at = graph_.value(v).producer;
      const ir::OpClass made_by = ir::class_of(graph_.node(at).op);
      return !inside_.contains(v) && c_.role[at] == Role::kMemory && graph_.node(at).op != Op::kBroadcast &&
             made_by != ir::OpClass::kReduction && readers_of(v) == 1;
    };
    return std::any_of(node.inputs.begin(), node.inputs.end(), own);
  }
  size_t readers_of(ValueId v) const { return c_.users[v].size() + (c_.is_output[v] ? 1 : 0); }

  // A wider type is converted where it is read, unless arithmetic that this epilogue can have, too, follows.
  std::string widening_refusal(ValueId result) const {
    const auto is_at_hand = [&](ValueId v) {
      NodeId at = graph_.value(v).producer;
      if (graph_.node(at).op == Op::kBroadcast) at = graph_.value(graph_.node(at).inputs[0]).producer;
      const Op op = graph_.node(at).op;
      return v == result || inside_.contains(v) || op == Op::kConstant || op == Op::kParameter;
    };
    for (NodeId user : c_.users[result]) {
      const Node& node = graph_.node(user);
      if (ir::is_elementwise(node.op) && std::all_of(node.inputs.begin(), node.inputs.end(), is_at_hand)) return {};
    }
    return "storing the narrower type moves fewer bytes";
  }

  bool join(NodeId id) {
    const Node& node = graph_.node(id);
    std::vector<NodeId> sides;
    for (ValueId v : node.inputs) {
      if (!inside_.contains(v)) collect_sides(v, id, sides);
    }
    if (!c_.partition.merge(id, anchor_)) return false;
    c_.role[id] = Role::kEpilogue;
    bool permuted = node.op == Op::kTranspose;
    for (ValueId v : node.inputs) {
      if (const auto found = inside_.find(v); found != inside_.end()) permuted |= found->second;
    }
    inside_[node.outputs[0]] = permuted;
    for (NodeId side : sides) {
      if (!c_.partition.merge(side, anchor_)) break;
      c_.role[side] = Role::kEpilogue;
    }
    return true;
  }

  // The broadcast that makes an operand of an epilogue node, with casts and reshapes of the small value before it; only
  // what nobody else reads. Nearest to the reader first.
  void collect_sides(ValueId value, NodeId reader, std::vector<NodeId>& sides) const {
    for (NodeId at = graph_.value(value).producer; c_.role[at] == Role::kMemory;
         at = graph_.value(graph_.node(at).inputs[0]).producer) {
      const Op op = graph_.node(at).op;
      const bool fits =
          sides.empty() || sides.back() != reader ? op == Op::kBroadcast : op == Op::kCast || op == Op::kReshape;
      if (!fits || !c_.only_read_by(graph_.node(at).outputs[0], reader)) return;
      sides.push_back(at);
      reader = at;
    }
  }

  FusionContext& c_;
  const ir::Graph& graph_;
  const NodeId anchor_;
  int64_t count_;
  std::unordered_map<ValueId, bool> inside_;  // values of the epilogue; true: behind a transpose
  std::priority_queue<NodeId, std::vector<NodeId>, std::greater<>> queue_;
  std::vector<NodeId> seen_;
};

}  // namespace

void fuse_epilogue(FusionContext& context, NodeId anchor) {
  Epilogue(context, anchor).grow();
}

}  // namespace heddle::passes
