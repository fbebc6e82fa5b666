#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "schedule/attention/chain.h"
#include "schedule/attention/weights.h"

namespace heddle::schedule {

// An attention as loops over batches, rows, keys and the elements of a head: two products, with a softmax over the keys
// between them. The second product sums over the keys. The form depends on what the nodes compute, not on their order:
// layout changes become index functions (chain.h), and the nodes between the products are normalised to one form
// (weights.h).
struct AttentionForm {
  ir::NodeId scores_product = 0, values_product = 0;
  ir::ValueId weights = 0;  // the operand of the second product that is multiplied by V

  // A batch dimension with its strides in elements. The stride of an operand that all heads share is 0.
  struct Batch {
    int64_t extent, q, k, v;
    int64_t table = 0;
  };
  struct Operand {
    ir::ValueId value = 0;
    int64_t offset = 0, line = 0, element = 0;  // line: stride between rows or keys
  };
  // Keys and values stored in the pages of a pool. The page table has an entry for each page of a sequence. Sequences
  // are the outermost batch dimensions. Along these dimensions only the table has a stride; the strides of K and V
  // are 0.
  struct Pages {
    ir::ValueId table = 0;
    int64_t keys = 0, pool = 0;     // keys per page; pages in the pool
    int64_t offset = 0, entry = 1;  // of the table
    int64_t k = 0, v = 0;           // strides between pages
    bool clamps = false;            // as KeyPages::clamps
  };
  std::vector<Batch> batch;
  std::optional<Pages> pages;
  int64_t rows = 1, keys = 1, depth = 1, width = 1;
  Operand q, k, v;

  // The pool of the expressions in `softmax`: the scores and sinks. In these expressions, local variable 0 is the
  // product of Q and K, and loads refer to ir values.
  ExprPool scores;
  VarId batch_var = 0, row_var = 0, outer_var = 0, key_var = 0;
  SoftmaxForm softmax;

  // Returns the indices of an element of the second product's result.
  std::function<std::vector<Index>(IndexPool&, const Index& batch, const Index& row, const Index& column)> result_at;
  // Divisions after the second product that belong to the softmax, as pairs of (division, dividend).
  std::vector<std::pair<ir::ValueId, ir::ValueId>> divisions;

  std::vector<ir::NodeId> inside;  // nodes from the first product to the second one or the last division
  std::vector<ir::NodeId> views;   // layout changes of the operands that are expressed by strides

  int64_t batches() const;
};

// Finds the attentions of a graph.
class AttentionFinder {
 public:
  explicit AttentionFinder(const ir::Graph& graph);

  // Returns the attention whose second product is `product`, or nullopt. If there is no attention although the
  // operands of `product` depend on sums of exponentials of products, sets `reason` to the reason.
  std::optional<ir::Attention> find(ir::NodeId product, const MayView& may_view, std::string* reason) const;

 private:
  const ir::Graph& graph_;
  // By node: true if the node depends on exponentials. Most products of a deep network do not, so find() can skip a
  // long search through residual sums.
  const std::vector<bool> has_exponentials_;
};

// Returns the form of a group of kind kAttention. The group's inputs are the values that the kernel reads. Throws
// kUnsupportedOperator.
AttentionForm attention_form(const ir::Graph& graph, const ir::Group& group);

}  // namespace heddle::schedule
