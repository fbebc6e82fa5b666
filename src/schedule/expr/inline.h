#pragma once

#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "schedule/expr/expr.h"

namespace heddle::schedule {

// Turns values of a graph into expressions on demand. A value at index expressions is: its binding where there is one;
// else its op applied to its operands at the indices that the op's meaning gives (elementwise: the same; broadcast
// drops, transpose permutes, reshape linearises and delinearises, gather indexes by a loaded value, ...).
class Inliner {
 public:
  Inliner(const ir::Graph& graph, ExprPool& pool) : graph_(graph), pool_(pool) {}

  // What a value is at some indices, where the caller knows better than its op; nullopt: inline the op.
  using Binding = std::function<std::optional<ExprId>(ir::ValueId, const std::vector<Index>& at)>;
  void set_binding(Binding binding) { binding_ = std::move(binding); }

  // Throws kUnsupportedOperator when it meets a node that has no per-element form and no binding.
  ExprId at(ir::ValueId value, const std::vector<Index>& index);
  // What a cast makes of its operand.
  ExprId cast(const ir::Node& node, ExprId value);

  // What was made so far, by value and place.
  const std::map<std::pair<ir::ValueId, std::vector<Index>>, ExprId>& made() const { return memo_; }

  // Whether `at` can look through this op.
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
