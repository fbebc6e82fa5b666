#include "passes/fusion/partition.h"

#include <algorithm>

namespace heddle::passes {
namespace {

using Cluster = Partition::Cluster;

void insert(std::vector<Cluster>& set, Cluster c) {
  if (std::find(set.begin(), set.end(), c) == set.end()) set.push_back(c);
}

// `gone` became `keep` in the neighbours of a cluster.
void replace(std::vector<Cluster>& set, Cluster gone, Cluster keep) {
  set.erase(std::remove(set.begin(), set.end(), gone), set.end());
  insert(set, keep);
}

}  // namespace

Partition::Partition(const ir::Graph& graph)
    : cluster_(graph.nodes().size(), kNone),
      nodes_(graph.nodes().size()),
      next_(graph.nodes().size()),
      last_(graph.nodes().size()),
      position_(graph.nodes().size()),
      at_(graph.nodes().size(), kNone),
      mark_(graph.nodes().size(), 0) {
  for (ir::NodeId id = 0; id < graph.nodes().size(); ++id) {
    const ir::Node& node = graph.node(id);
    if (node.op == ir::Op::kConstant || node.op == ir::Op::kParameter) continue;
    cluster_[id] = at_[id] = position_[id] = id;
    nodes_[id] = {id};
    for (ir::ValueId v : node.inputs) {
      const Cluster from = cluster_[graph.value(v).producer];
      if (from == kNone) continue;
      if (next_[from].empty() || next_[from].back() != id) next_[from].push_back(id);
      insert(last_[id], from);
    }
  }
}

// Whether a path of two or more edges leads from `from` to `to`; collects what `from` reaches before `to` in the order.
bool Partition::reach(Cluster from, Cluster to, std::vector<Cluster>& between) {
  ++stamp_;
  std::vector<Cluster> stack;
  for (Cluster c : next_[from]) {
    if (c != to) stack.push_back(c);
  }
  while (!stack.empty()) {
    const Cluster c = stack.back();
    stack.pop_back();
    if (mark_[c] == stamp_ || position_[c] > position_[to]) continue;
    if (c == to) return true;
    mark_[c] = stamp_;
    between.push_back(c);
    stack.insert(stack.end(), next_[c].begin(), next_[c].end());
  }
  return false;
}

bool Partition::merge(ir::NodeId a_node, ir::NodeId b_node) {
  Cluster a = cluster_[a_node], b = cluster_[b_node];
  if (a == b) return true;
  if (position_[a] > position_[b]) std::swap(a, b);
  std::vector<Cluster> after;
  if (reach(a, b, after)) return false;
  // What a reaches moves behind the joined cluster, everything else between stays in front of it.
  const uint32_t first = position_[a], end = position_[b] + 1;
  std::vector<Cluster> front, back;
  for (uint32_t p = first; p < end; ++p) {
    const Cluster c = at_[p];
    if (c == kNone || c == a || c == b) continue;
    (mark_[c] == stamp_ ? back : front).push_back(c);
  }
  const Cluster keep = nodes_[a].size() >= nodes_[b].size() ? a : b;
  join(keep, keep == a ? b : a);
  front.push_back(keep);
  front.insert(front.end(), back.begin(), back.end());
  front.resize(end - first, kNone);
  for (uint32_t i = 0; i < front.size(); ++i) {
    at_[first + i] = front[i];
    if (front[i] != kNone) position_[front[i]] = first + i;
  }
  return true;
}

void Partition::join(Cluster keep, Cluster gone) {
  for (ir::NodeId id : nodes_[gone]) cluster_[id] = keep;
  nodes_[keep].insert(nodes_[keep].end(), nodes_[gone].begin(), nodes_[gone].end());
  nodes_[gone].clear();
  for (Cluster c : next_[gone]) replace(last_[c], gone, keep);
  for (Cluster c : last_[gone]) replace(next_[c], gone, keep);
  for (auto* sets : {&next_, &last_}) {
    auto& mine = (*sets)[keep];
    for (Cluster c : (*sets)[gone]) insert(mine, c);
    mine.erase(std::remove_if(mine.begin(), mine.end(), [&](Cluster c) { return c == keep || c == gone; }), mine.end());
    (*sets)[gone] = {};
  }
}

std::vector<Partition::Cluster> Partition::order() const {
  std::vector<Cluster> result;
  for (Cluster c : at_) {
    if (c != kNone) result.push_back(c);
  }
  return result;
}

}  // namespace heddle::passes
