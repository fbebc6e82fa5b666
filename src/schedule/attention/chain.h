#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ir/group.h"
#include "schedule/attention/axes.h"
#include "schedule/attention/between.h"
#include "schedule/attention/pages/paged_index.h"

namespace heddle::schedule {

// Throws kUnsupportedOperator. `why` says why no attention kernel can compute the group.
[[noreturn]] void refuse_attention(const std::string& why);

// True if a layout change may be fused into the kernel of the node that reads it.
using MayView = std::function<bool(ir::NodeId view, ir::NodeId reader)>;

// The input of Chain: two products that may form an attention.
struct ChainProblem {
  const ir::Graph& graph;
  const ir::Group* group;  // operands are read from its inputs; null: no group yet, `may_view` decides
  const MayView& may_view;
  ir::NodeId scores_product, values_product;
  size_t weights;  // index of the second product's operand that depends on the first product
};

// Two products as loops over axes, where each operand has a stride per axis. The second product sums over columns of
// the first product. If a view requires it, a dimension is split into several axes. Throws kUnsupportedOperator if
// strides cannot express the operands.
class Chain {
 public:
  // `first_key`: a dimension of the values between the products may be longer than the number of keys. The first key
  // then has this index in that dimension.
  Chain(const ChainProblem& problem, const NodesBetween& nodes, int64_t first_key);

  // An operand in memory, with a stride per axis.
  struct Operand {
    ir::ValueId value = 0;
    int64_t offset = 0;
    std::vector<int64_t> strides;
    // Only for keys and values in pages. `strides` are the strides within a page, `page` is the distance between pages,
    // and `table` is the page table.
    int64_t page = 0;
    std::optional<PagedIndex::Table> table = {};
  };
  Operand q, k, v;
  std::vector<ir::NodeId> views;  // views between memory and the operands, which the strides include

  const ChainAxes& axes() const { return *axes_; }
  // Returns the axes of the weights, except the axis of the keys, outermost first.
  std::vector<ChainAxes::Id> loops() const;
  ir::ValueId weights() const { return values_dot().inputs[problem_.weights]; }
  std::vector<Index> weights_at(IndexPool& pool, const std::vector<Index>& axes) const;
  // Returns the position in the second product's result, as one index per dimension. `axes` has an index for each axis,
  // including kWidth.
  std::vector<Index> result_at(IndexPool& pool, const std::vector<Index>& axes) const;
  // True if a value that the scores depend on (other than the product) is read from memory instead of being computed.
  bool is_read(ir::ValueId value) const;

 private:
  // The dimensions of an operand of a dot.
  struct Side {
    Side(const ir::Graph& graph, const ir::Node& dot, size_t operand);
    std::vector<int64_t> batch, contract, free;
    Shape free_shape, contract_shape;
  };

  const ir::Node& scores_dot() const { return problem_.graph.node(problem_.scores_product); }
  const ir::Node& values_dot() const { return problem_.graph.node(problem_.values_product); }
  bool is_in_group(ir::NodeId id) const { return group_nodes_.contains(id); }
  void make_axes();
  void read(const NodesBetween& nodes, int64_t first_key);
  Operand read_operand(ExprPool& pool, ir::ValueId operand, ir::NodeId reader, const std::vector<Index>& at,
                       bool in_pages);
  // Returns the nodes above `operand` that the kernel can fuse into its loads, so that it reads their input instead:
  // layout changes and, with `in_pages`, at most one gather. The node that is nearest to the operand is first.
  std::vector<ir::NodeId> nodes_above(ir::ValueId operand, ir::NodeId reader, bool in_pages) const;
  size_t side_of_keys(const IndexPool& pool, const std::vector<Index>& product) const;
  std::vector<Index> dims_at(IndexPool& pool, const std::vector<int64_t>& dims, const std::vector<Index>& axes) const;

  const ChainProblem problem_;
  const Side scores_sides_[2], weight_dims_, value_dims_;
  std::set<ir::NodeId> group_nodes_;
  std::optional<ChainAxes> axes_;
  bool in_pages_ = true;  // true if K and V may be in pages
};

}  // namespace heddle::schedule
