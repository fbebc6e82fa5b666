#pragma once

#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "schedule/expr/expr.h"

namespace heddle::schedule {

// Converts values of a graph into expressions on demand. The expression of a value at some indices is its binding, if
// there is one. Otherwise it is the value's op, applied to its operands at the indices that the op implies
// (elementwise: the same; broadcast drops, transpose permutes, reshape linearises and delinearises, gather indexes by a
// loaded value, ...).
class Inliner {
 public:
  Inliner(const ir::Graph& graph, ExprPool& pool) : graph_(graph), pool_(pool) {}

  // The expression of a value at some indices, if the caller overrides the op; nullopt: inline the op.
  using Binding = std::function<std::optional<ExprId>(ir::ValueId, const std::vector<Index>& at)>;
  void set_binding(Binding binding) { binding_ = std::move(binding); }

  // Throws kUnsupportedOperator for a node without a per-element form and without a binding.
  ExprId at(ir::ValueId value, const std::vector<Index>& index);
  // The cast of an operand's expression.
  ExprId cast(const ir::Node& node, ExprId value);

  // All expressions made so far, by value and indices.
  const std::map<std::pair<ir::ValueId, std::vector<Index>>, ExprId>& made() const { return memo_; }

  // True if at() can inline this op.
  static bool inlines(ir::Op op);

 private:
  ExprId make(ir::ValueId value, const std::vector<Index>& index);
  ExprId elementwise(const ir::Node& node, const std::vector<Index>& index, DType dtype);
  ExprId layout(const ir::Node& node, const std::vector<Index>& index);
  ExprId pad(const ir::Node& node, const std::vector<Index>& index);
  ExprId concat(const ir::Node& node, const std::vector<Index>& index);
  ExprId indexed(const ir::Node& node, const std::vector<Index>& index);
  Index position(ExprId value, int64_t extent);

  const ir::Graph& graph_;
  ExprPool& pool_;
  Binding binding_;
  std::map<std::pair<ir::ValueId, std::vector<Index>>, ExprId> memo_;
};

}  // namespace heddle::schedule
