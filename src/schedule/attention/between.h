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

// The nodes from which a value is computed. The search passes through views, elementwise nodes and reductions, and ends
// at products and at nodes of other kinds. Also the subset of the found nodes that depends on one selected product.
class NodesBetween {
 public:
  explicit NodesBetween(const ir::Graph& graph) : graph_(graph) {}

  // Collects the nodes from which `value` is computed. Returns false if there are too many.
  bool look_above(ir::ValueId value);
  // For each node, true if look_above() on its value would find an exponential.
  static std::vector<bool> find_exponentials(const ir::Graph& graph);
  // Those of the collected products on which exponentials depend, the last product first. Other products are ignored:
  // residual sums in a deep network lead to many of them.
  std::vector<ir::NodeId> products() const;
  // Selects one of the collected products and finds the nodes that depend on it.
  void set_product(ir::NodeId product);
  bool depends(ir::NodeId id) const { return dependent_.contains(id); }
  const std::set<ir::NodeId>& dependent() const { return dependent_; }
  // True if exponentials that depend on the selected product are summed.
  bool sums_exponentials() const;

  const ir::Graph& graph() const { return graph_; }
  ir::NodeId product() const { return product_; }

 private:
  void find_dependent();

  const ir::Graph& graph_;
  std::set<ir::NodeId> above_, dependent_;
  ir::NodeId product_ = 0;
};

// Builds expressions for the values between two products, at one batch, row and key. Loads refer to graph values.
class KeyExprs {
 public:
  // `reads`: true for values to load instead of compute. `first`: the position of the first key in a dimension that has
  // more elements than there are keys.
  KeyExprs(const NodesBetween& nodes, std::function<bool(ir::ValueId)> reads, int64_t first)
      : nodes_(nodes), graph_(nodes.graph()), reads_(std::move(reads)), first_(first), inliner_(graph_, pool) {
    inliner_.set_binding([this](ir::ValueId v, const std::vector<Index>& at) { return bind(v, at); });
  }
  KeyExprs(const KeyExprs&) = delete;
  KeyExprs& operator=(const KeyExprs&) = delete;

  ExprPool pool;
  VarId key = 0;
  int64_t keys = 1;
  Index key_at;  // the variable `key`, or 0 if there is only one key
  std::vector<KeyReduction> reductions;
  std::set<std::vector<Index>> product_at;  // positions at which the product is read

  // The expression of a value at an index. Throws kUnsupportedOperator.
  ExprId at(ir::ValueId value, const std::vector<Index>& index) { return inliner_.at(value, index); }
  // The position of the key in a dimension of `extent` elements, of which there may be more than keys.
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
