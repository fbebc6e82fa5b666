#pragma once

#include <vector>

#include "ir/graph.h"

namespace heddle::passes {

// A partition of a graph's nodes into clusters whose dependences are acyclic. Initially, every node is a separate
// cluster; constants and parameters belong to no cluster. merge() joins two clusters, unless a path between them passes
// through a third one. The topological order of the clusters is updated at each merge, so merge() examines only the
// clusters between the two.
class Partition {
 public:
  using Cluster = uint32_t;
  static constexpr Cluster kNone = ~0u;

  explicit Partition(const ir::Graph& graph);

  Cluster cluster_of(ir::NodeId node) const { return cluster_[node]; }
  const std::vector<ir::NodeId>& nodes(Cluster cluster) const { return nodes_[cluster]; }  // unordered
  bool same(ir::NodeId a, ir::NodeId b) const { return cluster_[a] == cluster_[b]; }

  // Joins the clusters of two nodes. Returns false, without a change, if a path from one cluster to the other passes
  // through a third.
  bool merge(ir::NodeId a, ir::NodeId b);

  // Returns all clusters in topological order: each cluster follows those it depends on.
  std::vector<Cluster> order() const;

 private:
  Cluster ends() const { return static_cast<Cluster>(nodes_.size()); }
  bool reach(Cluster from, Cluster to);
  void join(Cluster keep, Cluster gone);
  void put_behind(Cluster previous, Cluster c);

  std::vector<Cluster> cluster_;                  // by node
  std::vector<std::vector<ir::NodeId>> nodes_;    // by cluster
  std::vector<std::vector<ir::NodeId>> readers_;  // by cluster: nodes that read its values, including its own nodes
  std::vector<uint32_t> position_;                // by cluster: ascending in topological order
  std::vector<Cluster> next_, previous_;          // by cluster: topological order as a list; ends() is the sentinel
  std::vector<uint32_t> mark_;
  uint32_t stamp_ = 0;
};

}  // namespace heddle::passes
