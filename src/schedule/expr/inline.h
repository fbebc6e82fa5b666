#pragma once

#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "schedule/expr/expr.h"

namespace heddle::schedule {

// Converts values of a graph to expressions on demand. If the binding returns an expression for a value at some
// indices, that expression is used. Otherwise the expression is the value's op, applied to its operands at the indices
// that the op implies. An elementwise op keeps the indices, a broadcast drops some, a transpose permutes them, a
// reshape linearises and delinearises them, and a gather uses a loaded value as an index.
class Inliner {
 public:
  Inliner(const ir::Graph& graph, ExprPool& pool) : graph_(graph), pool_(pool) {}

  // Returns the expression of a value at some indices, or nullopt if the value's op is to be inlined.
  using Binding = std::function<std::optional<ExprId>(ir::ValueId, const std::vector<Index>& at)>;
  void set_binding(Binding binding) { binding_ = std::move(binding); }

  // Returns the expression of a value at `index`. Throws kUnsupportedOperator if the value's node has no per-element
  // form and there is no binding.
  ExprId at(ir::ValueId value, const std::vector<Index>& index);
  // Returns the expression of the cast `node`. `value` is the expression of its operand.
  ExprId cast(const ir::Node& node, ExprId value);

  // All expressions created so far, by value and indices.
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
  ExprId dequantized(const ir::Node& node, const std::vector<Index>& index);
  Index position(ExprId value, int64_t extent);

  const ir::Graph& graph_;
  ExprPool& pool_;
  Binding binding_;
  std::map<std::pair<ir::ValueId, std::vector<Index>>, ExprId> memo_;
};

}  // namespace heddle::schedule
