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

// Throws kUnsupportedOperator: no attention kernel can do it.
[[noreturn]] void refuse_attention(const std::string& why);

// Whether a layout change may go into the kernel of who reads it.
using MayView = std::function<bool(ir::NodeId view, ir::NodeId reader)>;

// What is known of two products before they are looked at.
struct ChainProblem {
  const ir::Graph& graph;
  const ir::Group* group;  // whose inputs are what is read; null: none yet, what may be one is decided by `may_view`
  const MayView& may_view;
  ir::NodeId scores_product, values_product;
  size_t weights;  // which operand of the second product is made from the first one
};

// Two products of which the second one sums over columns of the first one, as loops over axes and strides of the
// operands. Dimensions are cut where a view needs it. Throws kUnsupportedOperator where strides do not express them.
class Chain {
 public:
  // `first_key`: where the keys begin in a longer dimension of what lies between.
  Chain(const ChainProblem& problem, const NodesBetween& nodes, int64_t first_key);

  // Where an operand lies, with strides by axis.
  struct Operand {
    ir::ValueId value = 0;
    int64_t offset = 0;
    std::vector<int64_t> strides;
    // Of keys and values in pages, in which `strides` are: from page to page, and where its table has them.
    int64_t page = 0;
    std::optional<PagedIndex::Table> table = {};
  };
  Operand q, k, v;
  std::vector<ir::NodeId> views;  // above the operands, which the strides express

  const ChainAxes& axes() const { return *axes_; }
  // The axes of the weights but the keys', the outermost first.
  std::vector<ChainAxes::Id> loops() const;
  ir::ValueId weights() const { return values_dot().inputs[problem_.weights]; }
  std::vector<Index> weights_at(IndexPool& pool, const std::vector<Index>& axes) const;
  // Indices of the second product's result, where the axes (the width's, too) are at these.
  std::vector<Index> result_at(IndexPool& pool, const std::vector<Index>& axes) const;
  // Whether a value beside the scores is read where it is.
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
  // What lies above an operand that may be read through: layout changes and, `in_pages`, one gather.
  std::vector<ir::NodeId> nodes_above(ir::ValueId operand, ir::NodeId reader, bool in_pages) const;
  size_t side_of_keys(const IndexPool& pool, const std::vector<Index>& product) const;
  std::vector<Index> dims_at(IndexPool& pool, const std::vector<int64_t>& dims, const std::vector<Index>& axes) const;

  const ChainProblem problem_;
  const Side scores_sides_[2], weight_dims_, value_dims_;
  std::set<ir::NodeId> group_nodes_;
  std::optional<ChainAxes> axes_;
  bool in_pages_ = true;  // whether K and V may be
};

}  // namespace heddle::schedule
