#include "passes/fusion/partition.h"

#include <algorithm>

namespace heddle::passes {

Partition::Partition(const ir::Graph& graph)
    : cluster_(graph.nodes().size(), kNone),
      nodes_(graph.nodes().size()),
      readers_(graph.nodes().size()),
      position_(graph.nodes().size()),
      next_(graph.nodes().size() + 1),
      previous_(graph.nodes().size() + 1),
      mark_(graph.nodes().size(), 0) {
  Cluster last = ends();
  for (ir::NodeId id = 0; id < graph.nodes().size(); ++id) {
    const ir::Node& node = graph.node(id);
    if (node.op == ir::Op::kConstant || node.op == ir::Op::kParameter) continue;
    cluster_[id] = position_[id] = id;
    put_behind(last, id);
    last = id;
    nodes_[id] = {id};
    for (ir::ValueId v : node.inputs) {
      const ir::NodeId from = graph.value(v).producer;
      if (cluster_[from] == kNone) continue;
      if (readers_[from].empty() || readers_[from].back() != id) readers_[from].push_back(id);
    }
  }
  put_behind(last, ends());
}

void Partition::put_behind(Cluster previous, Cluster c) {
  next_[previous] = c;
  previous_[c] = previous;
}

// Whether a path of two or more edges leads from `from` to `to`; marks what `from` reaches before `to` in the order.
bool Partition::reach(Cluster from, Cluster to) {
  ++stamp_;
  std::vector<Cluster> stack;
  const auto push_readers = [&](Cluster c) {
    for (const ir::NodeId reader : readers_[c]) {
      const Cluster next = cluster_[reader];
      if (next != c && mark_[next] != stamp_ && position_[next] <= position_[to]) stack.push_back(next);
    }
  };
  mark_[from] = stamp_;
  push_readers(from);
  std::erase(stack, to);
  while (!stack.empty()) {
    const Cluster c = stack.back();
    stack.pop_back();
    if (mark_[c] == stamp_) continue;
    if (c == to) return true;
    mark_[c] = stamp_;
    push_readers(c);
  }
  return false;
}

bool Partition::merge(ir::NodeId a_node, ir::NodeId b_node) {
  Cluster a = cluster_[a_node], b = cluster_[b_node];
  if (a == b) return true;
  if (position_[a] > position_[b]) std::swap(a, b);
  if (reach(a, b)) return false;
  // What a reaches moves behind the joined cluster, everything else between stays in front of it.
  std::vector<uint32_t> positions{position_[a]};
  std::vector<Cluster> front, back;
  for (Cluster c = next_[a]; c != b; c = next_[c]) {
    positions.push_back(position_[c]);
    (mark_[c] == stamp_ ? back : front).push_back(c);
  }
  Cluster last = previous_[a];
  const Cluster behind = next_[b];
  const Cluster keep = nodes_[a].size() >= nodes_[b].size() ? a : b;
  join(keep, keep == a ? b : a);
  front.push_back(keep);
  front.insert(front.end(), back.begin(), back.end());
  for (size_t i = 0; i < front.size(); ++i) {
    position_[front[i]] = positions[i];
    put_behind(last, front[i]);
    last = front[i];
  }
  put_behind(last, behind);
  return true;
}

void Partition::join(Cluster keep, Cluster gone) {
  for (ir::NodeId id : nodes_[gone]) cluster_[id] = keep;
  // The shorter list goes to the longer one: a node changes its list at most log n times.
  for (auto* lists : {&nodes_, &readers_}) {
    auto &mine = (*lists)[keep], &theirs = (*lists)[gone];
    if (mine.size() < theirs.size()) std::swap(mine, theirs);
    mine.insert(mine.end(), theirs.begin(), theirs.end());
    theirs = {};
  }
}

std::vector<Partition::Cluster> Partition::order() const {
  std::vector<Cluster> result;
  for (Cluster c = next_[ends()]; c != ends(); c = next_[c]) result.push_back(c);
  return result;
}

}  // namespace heddle::passes
