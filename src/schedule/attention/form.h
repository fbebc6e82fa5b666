#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "schedule/attention/chain.h"
#include "schedule/attention/weights.h"

namespace heddle::schedule {

// An attention as loops over batches, rows, keys and the elements of heads: two products with a softmax over the keys
// between them; the second product sums over the keys. It is recognised by what the nodes compute, whatever their
// order: layout changes become functions of indices (chain.h); the nodes between the products get one form (weights.h).
struct AttentionForm {
  ir::NodeId scores_product = 0, values_product = 0;
  ir::ValueId weights = 0;  // the operand of the second product that multiplies V

  // Dimensions of the batch, the outermost first, with strides in elements. A stride is 0 where heads share an operand.
  struct Batch {
    int64_t extent, q, k, v;
    int64_t table = 0;
  };
  struct Operand {
    ir::ValueId value = 0;
    int64_t offset = 0, line = 0, element = 0;  // line: stride between rows or keys
  };
  // Keys and values in pages of a pool. A table has an entry for each page of a sequence. Sequences are the outermost
  // batch dimensions; along them only the table has a stride, K and V have none.
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

  // The scores, and what is beside them, as expressions of `scores`; the product is local 0, loads name values.
  ExprPool scores;
  VarId batch_var = 0, row_var = 0, outer_var = 0, key_var = 0;
  SoftmaxForm softmax;

  // Indices of the second product's result.
  std::function<std::vector<Index>(IndexPool&, const Index& batch, const Index& row, const Index& column)> result_at;
  // Divisions after the second product that belong to the softmax, each with its dividend.
  std::vector<std::pair<ir::ValueId, ir::ValueId>> divisions;

  std::vector<ir::NodeId> inside;  // nodes that depend on the first product, up to the second one or the last division
  std::vector<ir::NodeId> views;   // layout changes of the operands that strides express

  int64_t batches() const;
};

// Finds the attentions of a graph.
class AttentionFinder {
 public:
  explicit AttentionFinder(const ir::Graph& graph);

  // The attention whose last product is `product`, or nullopt. If exponentials of products are summed before the
  // product, `reason` then says why it is no attention.
  std::optional<ir::Attention> find(ir::NodeId product, const MayView& may_view, std::string* reason) const;

 private:
  const ir::Graph& graph_;
  // By node: it depends on exponentials. Most products of a deep network do not, and a search through residual sums
  // would reach far back.
  const std::vector<bool> has_exponentials_;
};

// The form of a group of kind kAttention, whose inputs are what the kernel reads. Throws kUnsupportedOperator.
AttentionForm attention_form(const ir::Graph& graph, const ir::Group& group);

}  // namespace heddle::schedule
