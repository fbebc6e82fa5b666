#include "passes/fusion/operand_producers.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <queue>
#include <set>
#include <unordered_set>

namespace heddle::passes {
namespace {

using Role = FusionContext::Role;

// Of an epilogue that holds them in registers beside the sums.
constexpr size_t kMostSideNodes = 32, kMostSideOperands = 2;  // operands as large as the result
constexpr int kMostSideResults = 2;
constexpr int64_t kSmallPart = 16;  // a value with this part of the result's elements costs little wherever it is made

// The few warps of an epilogue compute exponentials and the like more slowly than a kernel of its own, which fills the
// device, loads and stores the same values (docs/notes/h200/training-steps.md).
bool is_cheap(const Node& node) {
  return ir::is_elementwise(node.op) && !ir::is_costly(node.op);
}

// What is quantised is stored so, by the kernel that has the sums.
bool is_quantising(const ir::Graph& graph, const Node& node) {
  return node.op == Op::kCast && is_small_int(graph, node.outputs[0]);
}

// Elementwise nodes that an epilogue can compute, from the last to the first; those whose results leave the epilogue
// first.
struct SideValues {
  std::vector<NodeId> nodes;
  int results = 0;
};

// Finds the nodes that compute a value, and those that compute 16-bit results for others from the same values.
class SideFinder {
 public:
  SideFinder(const FusionContext& c, NodeId anchor, int64_t count, const std::function<bool(NodeId)>& inside)
      : c_(c), graph_(c.graph), anchor_(anchor), count_(count), inside_(inside) {}

  std::optional<SideValues> find(ValueId v) {
    if (!take(v) || nodes_.empty() || !take_readers() || operands_.size() > kMostSideOperands) return std::nullopt;
    SideValues found;
    found.nodes.assign(nodes_.rbegin(), nodes_.rend());
    const auto rest = std::stable_partition(found.nodes.begin(), found.nodes.end(),
                                            [this](NodeId id) { return is_read_outside(id); });
    found.results = static_cast<int>(rest - found.nodes.begin());
    return found.results <= kMostSideResults ? std::optional(found) : std::nullopt;
  }

 private:
  bool is_small(ValueId v) const { return element_count(graph_.shape(v)) * kSmallPart <= count_; }
  bool may_be_taken(NodeId id) const {
    const Node& node = graph_.node(id);
    if (is_quantising(graph_, node)) return false;
    const bool is_free = c_.role[id] == Role::kMemory && !inside_(id) && node.outputs.size() == 1;
    const bool has_form = is_cheap(node) || node.op == Op::kReshape || node.op == Op::kIota ||
                          (node.op == Op::kBroadcast && is_small(node.inputs[0]));
    if (!is_free || !has_form || element_count(graph_.shape(node.outputs[0])) != count_) return false;
    const std::vector<NodeId>& readers = c_.users[node.outputs[0]];
    return std::find(readers.begin(), readers.end(), anchor_) == readers.end();  // which needs it before the epilogue
  }

  // Takes what computes `v`; false if something does not go into an epilogue.
  bool take(ValueId v) {
    const NodeId id = graph_.value(v).producer;
    const Node& node = graph_.node(id);
    if (nodes_.contains(id)) return true;
    if (may_be_taken(id)) {
      nodes_.insert(id);
      return nodes_.size() <= kMostSideNodes &&
             std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId operand) { return take(operand); });
    }
    if (node.op == Op::kConstant) return true;
    if (inside_(id) || (id > anchor_ && waits_for(c_, id, anchor_))) return false;
    if (!is_small(v)) operands_.insert(v);
    const bool is_stored = node.op == Op::kParameter || c_.role[id] != Role::kMemory;
    return is_small(v) || (is_stored && element_count(graph_.shape(v)) <= count_);
  }

  bool is_read_outside(NodeId id) const {
    const ValueId made = graph_.node(id).outputs[0];
    return c_.is_output[made] || std::any_of(c_.users[made].begin(), c_.users[made].end(),
                                             [&](NodeId user) { return !nodes_.contains(user) && !inside_(user); });
  }

  // Takes the elementwise readers of what is taken, until all that others read has 16 bits.
  bool take_readers() {
    std::vector<NodeId> open(nodes_.begin(), nodes_.end());
    while (!open.empty()) {
      const NodeId id = open.back();
      open.pop_back();
      const ValueId made = graph_.node(id).outputs[0];
      for (const NodeId user : c_.users[made]) {
        if (nodes_.contains(user) || inside_(user) || !may_be_taken(user)) continue;
        const auto& operands = graph_.node(user).inputs;
        const std::set<NodeId> before = nodes_;
        nodes_.insert(user);
        if (!std::all_of(operands.begin(), operands.end(), [&](ValueId v) { return take(v); })) {
          nodes_ = before;
          continue;
        }
        if (nodes_.size() > kMostSideNodes) return false;
        for (const NodeId added : nodes_) {
          if (!before.contains(added)) open.push_back(added);
        }
      }
    }
    return std::none_of(nodes_.begin(), nodes_.end(), [&](NodeId id) {
      const ValueId made = graph_.node(id).outputs[0];
      return is_read_outside(id) && (size_of(graph_.dtype(made)) > 2 || is_repeated_outside(made));
    });
  }

  // True if some reader in another kernel would compute the value again, from the same values in memory, instead of
  // reading it.
  bool is_repeated_outside(ValueId v) const {
    return std::any_of(c_.users[v].begin(), c_.users[v].end(), [&](NodeId user) {
      const bool is_outside = !nodes_.contains(user) && !inside_(user);
      return is_outside && c_.role[user] == Role::kMemory && ir::is_elementwise(graph_.node(user).op);
    });
  }

  const FusionContext& c_;
  const ir::Graph& graph_;
  const NodeId anchor_;
  const int64_t count_;
  const std::function<bool(NodeId)>& inside_;
  std::set<NodeId> nodes_;
  std::set<ValueId> operands_;
};

// A lookup of one row by an index that is made outside: an item of a sequence in the body of a loop.
bool is_one_row(const FusionContext& c, const Node& node) {
  return element_count(c.graph.shape(node.inputs[1])) == 1 && node.attrs.integer("dim") == 0 &&
         c.role[c.graph.value(node.inputs[1]).producer] != Role::kMemory;
}

// True if `v` is a result, or if a node reads it that is not memory-bound and elementwise.
bool is_needed_in_memory(const FusionContext& c, ValueId v, int depth = 0) {
  constexpr int kMostViews = 4;
  return c.is_output[v] || std::any_of(c.users[v].begin(), c.users[v].end(), [&](NodeId id) {
           const Node& node = c.graph.node(id);
           if (node.op == Op::kReshape) {
             return depth < kMostViews && is_needed_in_memory(c, node.outputs[0], depth + 1);
           }
           return c.role[id] != Role::kMemory || !ir::is_elementwise(node.op);
         });
}

std::optional<SideValues> find(const FusionContext& c, NodeId anchor, int64_t count, ValueId v, NodeId reader) {
  const std::function<bool(NodeId)> inside = [&](NodeId id) { return id == reader || c.partition.same(id, anchor); };
  return SideFinder(c, anchor, count, inside).find(v);
}

}  // namespace

bool is_small_int(const ir::Graph& graph, ValueId v) {
  return is_int(graph.dtype(v)) && size_of(graph.dtype(v)) <= 2;
}

bool waits_for(const FusionContext& c, NodeId later, NodeId earlier) {
  constexpr size_t kMostSteps = 256;
  std::vector<NodeId> open{earlier};
  std::unordered_set<NodeId> seen;
  while (!open.empty() && seen.size() < kMostSteps) {
    const NodeId id = open.back();
    open.pop_back();
    for (const ValueId v : c.graph.node(id).outputs) {
      for (const NodeId user : c.users[v]) {
        if (user == later) return true;
        if (user < later && seen.insert(user).second) open.push_back(user);
      }
    }
  }
  return false;
}

bool OperandProducers::can_compute(ValueId v, NodeId reader) const {
  return target_.has_tensor_cores() && find(c_, anchor_, count_, v, reader).has_value();
}

bool OperandProducers::is_stored_for(ValueId v, NodeId reader) const {
  const NodeId producer = graph_.value(v).producer;
  const Node& node = graph_.node(producer);
  if (c_.role[producer] != Role::kMemory || !ir::is_elementwise(node.op)) return false;
  if (producer > anchor_ && waits_for(c_, producer, anchor_)) return false;  // it may be a value of the epilogue
  const bool is_large = element_count(graph_.shape(v)) == count_;
  const bool serves_reader_alone = c_.users[v].size() == 1 && is_cheap(node);
  return is_large && !serves_reader_alone && !is_needed_in_memory(c_, v) && !can_compute(v, reader);
}

void OperandProducers::take() {
  if (target_.has_tensor_cores()) take_elementwise();
  take_own();
}

bool OperandProducers::is_full() const {
  return c_.partition.nodes(c_.partition.cluster_of(anchor_)).size() >= kMostKernelNodes;
}

void OperandProducers::take_elementwise() {
  const std::vector<NodeId> nodes = c_.partition.nodes(c_.partition.cluster_of(anchor_));
  for (const NodeId reader : nodes) {
    if (reader == anchor_ || c_.role[reader] != Role::kEpilogue) continue;
    for (const ValueId v : graph_.node(reader).inputs) {
      const NodeId producer = graph_.value(v).producer;
      if (c_.role[producer] != Role::kMemory || c_.partition.same(producer, anchor_)) continue;
      const std::optional<SideValues> found = find(c_, anchor_, count_, v, reader);
      if (!found || nodes.size() + found->nodes.size() > kMostKernelNodes) continue;
      for (const NodeId id : found->nodes) {
        if (!c_.partition.merge(id, anchor_)) break;
        c_.role[id] = Role::kEpilogue;
      }
      c_.decide(true, "epilogue", producer, anchor_,
                fmt::format("it makes an operand of the epilogue from values in memory, and {} more results",
                            found->results));
    }
  }
}

// From the readers upwards.
void OperandProducers::take_own() {
  std::priority_queue<NodeId> open;
  const auto open_inputs = [&](NodeId id) {
    for (const ValueId v : graph_.node(id).inputs) open.push(graph_.value(v).producer);
  };
  for (const NodeId id : c_.partition.nodes(c_.partition.cluster_of(anchor_))) {
    if (id != anchor_) open_inputs(id);
  }
  for (NodeId last = anchor_; !open.empty();) {
    const NodeId id = open.top();
    open.pop();
    if (id == last || c_.role[id] != Role::kMemory || is_full() || !is_own(id)) continue;
    last = id;
    if (!c_.partition.merge(id, anchor_)) continue;
    c_.role[id] = Role::kEpilogue;
    c_.decide(true, "epilogue", id, anchor_, "it makes an operand of the epilogue and nothing else");
    open_inputs(id);
  }
}

bool OperandProducers::is_own(NodeId id) const {
  const Node& node = graph_.node(id);
  const ValueId v = node.outputs[0];
  const auto inside = [&](NodeId user) { return user != anchor_ && c_.partition.same(user, anchor_); };
  if (c_.is_output[v] || !std::all_of(c_.users[v].begin(), c_.users[v].end(), inside)) return false;
  if (node.op == Op::kReshape) {
    // A reshape of a value from outside is a view and costs nothing there.
    return c_.role[graph_.value(node.inputs[0]).producer] == Role::kMemory;
  }
  if (node.op == Op::kGather) return is_one_row(c_, node);
  if (is_quantising(graph_, node)) return false;
  const bool has_form = is_cheap(node) || node.op == Op::kBroadcast || node.op == Op::kSlice || node.op == Op::kIota;
  return has_form && element_count(graph_.shape(v)) <= count_;
}

}  // namespace heddle::passes
