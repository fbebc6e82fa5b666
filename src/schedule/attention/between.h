#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "ir/group.h"
#include "schedule/attention/weights.h"
#include "schedule/expr/inline.h"

namespace heddle::schedule {

// The nodes that compute a value by views, elementwise nodes and reductions, and the subset that depends on one
// product.
class NodesBetween {
 public:
  explicit NodesBetween(const ir::Graph& graph) : graph_(graph) {}

  // Collects all nodes above a value; returns false if there are too many.
  bool look_above(ir::ValueId value);
  // By node: true if look_above() would find an exponential.
  static std::vector<bool> find_exponentials(const ir::Graph& graph);
  // The products among these nodes on which exponentials depend, the last one first. A deep network has many other
  // products above, since its residual sums reach back to its input.
  std::vector<ir::NodeId> products() const;
  // Selects the product above and finds the nodes that depend on it.
  void set_product(ir::NodeId product);
  bool depends(ir::NodeId id) const { return dependent_.contains(id); }
  const std::set<ir::NodeId>& dependent() const { return dependent_; }
  // True if exponentials of the product are summed.
  bool sums_exponentials() const;

  const ir::Graph& graph() const { return graph_; }
  ir::NodeId product() const { return product_; }

 private:
  void find_dependent();

  const ir::Graph& graph_;
  std::set<ir::NodeId> above_, dependent_;
  ir::NodeId product_ = 0;
};

// Makes the expressions of values between two products at one batch, row and key. Loads name values of the graph.
class KeyExprs {
 public:
  // `reads`: true for values that are loaded instead of computed. `first`: position of the first key in a longer
  // dimension.
  KeyExprs(const NodesBetween& nodes, std::function<bool(ir::ValueId)> reads, int64_t first)
      : nodes_(nodes), graph_(nodes.graph()), reads_(std::move(reads)), first_(first), inliner_(graph_, pool) {
    inliner_.set_binding([this](ir::ValueId v, const std::vector<Index>& at) { return bind(v, at); });
  }
  KeyExprs(const KeyExprs&) = delete;
  KeyExprs& operator=(const KeyExprs&) = delete;

  ExprPool pool;
  VarId key = 0;
  int64_t keys = 1;
  Index key_at;  // the key's variable, or 0 if there is one key
  std::vector<KeyReduction> reductions;
  std::set<std::vector<Index>> product_at;  // where the product is read

  // Throws kUnsupportedOperator.
  ExprId at(ir::ValueId value, const std::vector<Index>& index) { return inliner_.at(value, index); }
  // Position of the key in a dimension longer than the keys.
  Index key_in(int64_t extent);

 private:
  std::optional<ExprId> bind(ir::ValueId value, const std::vector<Index>& at);
  ExprId reduce(const ir::Node& node, const std::vector<Index>& at);

  const NodesBetween& nodes_;
  const ir::Graph& graph_;
  std::function<bool(ir::ValueId)> reads_;
  int64_t first_;
  Inliner inliner_;
};

}  // namespace heddle::schedule
