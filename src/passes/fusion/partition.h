#pragma once

#include <vector>

#include "ir/graph.h"

namespace heddle::passes {

// A partition of a graph's nodes into clusters whose dependences stay acyclic. At first every node is a cluster of its
// own (constants and parameters are in none). merge() joins two unless a path between them leads through a third one.
// The topological order of the clusters is maintained under merging, so a check looks only at those between the two.
class Partition {
 public:
  using Cluster = uint32_t;
  static constexpr Cluster kNone = ~0u;

  explicit Partition(const ir::Graph& graph);

  Cluster cluster_of(ir::NodeId node) const { return cluster_[node]; }
  const std::vector<ir::NodeId>& nodes(Cluster cluster) const { return nodes_[cluster]; }  // unordered
  bool same(ir::NodeId a, ir::NodeId b) const { return cluster_[a] == cluster_[b]; }

  // Joins the clusters of two nodes; false (and no change) when a path from one to the other leads through a third.
  bool merge(ir::NodeId a, ir::NodeId b);

  // All clusters, each after those that it depends on.
  std::vector<Cluster> order() const;

 private:
  Cluster ends() const { return static_cast<Cluster>(nodes_.size()); }
  bool reach(Cluster from, Cluster to);
  void join(Cluster keep, Cluster gone);
  void put_behind(Cluster previous, Cluster c);

  std::vector<Cluster> cluster_;                  // by node
  std::vector<std::vector<ir::NodeId>> nodes_;    // by cluster
  std::vector<std::vector<ir::NodeId>> readers_;  // by cluster: nodes that read it, its own among them
  std::vector<uint32_t> position_;                // by cluster: ascending along the order
  std::vector<Cluster> next_, previous_;          // by cluster: the order; its end and beginning are at the last index
  std::vector<uint32_t> mark_;
  uint32_t stamp_ = 0;
};

}  // namespace heddle::passes
