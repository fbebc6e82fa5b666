#include "ort/graph/partition.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

namespace heddle::ort {
namespace {

// Each merge looks for paths between neighbouring sets. If that would take more steps than this, sets stay as they are.
constexpr size_t kMostSteps = 200'000'000;

class DisjointSets {
 public:
  explicit DisjointSets(size_t count) : parents_(count) { std::iota(parents_.begin(), parents_.end(), size_t{0}); }
  size_t find(size_t i) {
    while (parents_[i] != i) i = parents_[i] = parents_[parents_[i]];
    return i;
  }
  void join(size_t a, size_t b) { parents_[std::max(find(a), find(b))] = std::min(find(a), find(b)); }

 private:
  std::vector<size_t> parents_;
};

// Along each path, the number of times that it enters the wanted nodes again: wanted nodes of one phase have no other
// node between them.
std::vector<size_t> phases_of(const NodeGraph& graph) {
  std::vector<size_t> phases(graph.wanted.size(), 0);
  for (size_t node = 0; node < phases.size(); ++node) {
    for (const size_t next : graph.successors[node]) {
      const bool enters = !graph.wanted[node] && graph.wanted[next];
      phases[next] = std::max(phases[next], phases[node] + (enters ? 1 : 0));
    }
  }
  return phases;
}

// The graph whose nodes are the sets, and each node that is in none.
using SetEdges = std::map<size_t, std::set<size_t>>;

SetEdges edges_of(const NodeGraph& graph, DisjointSets& sets) {
  SetEdges edges;
  for (size_t node = 0; node < graph.wanted.size(); ++node) {
    for (const size_t next : graph.successors[node]) {
      if (sets.find(node) != sets.find(next)) edges[sets.find(node)].insert(sets.find(next));
    }
  }
  return edges;
}

// True if a path of more than one edge leads from `from` to `to`.
bool has_detour(const SetEdges& edges, size_t from, size_t to) {
  std::vector<size_t> open;
  std::set<size_t> seen;
  const auto visit = [&](size_t set) {
    const auto found = edges.find(set);
    if (found == edges.end()) return;
    for (const size_t next : found->second) {
      if (set == from && next == to) continue;
      if (seen.insert(next).second) open.push_back(next);
    }
  };
  visit(from);
  while (!open.empty() && !seen.contains(to)) {
    const size_t set = open.back();
    open.pop_back();
    visit(set);
  }
  return seen.contains(to);
}

// Joins two sets with an edge between them that no path through another connects. Returns false if there are none.
bool merge_two(const NodeGraph& graph, DisjointSets& sets) {
  const SetEdges edges = edges_of(graph, sets);
  for (const auto& [from, targets] : edges) {
    if (!graph.wanted[from]) continue;
    for (const size_t to : targets) {
      if (!graph.wanted[to] || has_detour(edges, from, to)) continue;
      sets.join(from, to);
      return true;
    }
  }
  return false;
}

}  // namespace

std::vector<std::vector<size_t>> partition(const NodeGraph& graph) {
  const std::vector<size_t> phases = phases_of(graph);
  DisjointSets sets(graph.wanted.size());
  for (size_t node = 0; node < graph.wanted.size(); ++node) {
    for (const size_t next : graph.successors[node]) {
      if (graph.wanted[node] && graph.wanted[next] && phases[node] == phases[next]) sets.join(node, next);
    }
  }
  std::map<size_t, std::vector<size_t>> members;
  const auto collect = [&] {
    members.clear();
    for (size_t node = 0; node < graph.wanted.size(); ++node) {
      if (graph.wanted[node]) members[sets.find(node)].push_back(node);
    }
  };
  collect();
  if (members.size() * members.size() <= kMostSteps / std::max<size_t>(graph.wanted.size(), 1)) {
    while (merge_two(graph, sets)) {
    }
    collect();
  }
  std::vector<std::vector<size_t>> result;
  for (auto& [first, nodes] : members) result.push_back(std::move(nodes));
  return result;
}

}  // namespace heddle::ort
