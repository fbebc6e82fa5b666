#pragma once

#include <unordered_map>
#include <vector>

#include "frontend/onnx/reader/budget.h"
#include "ir/graph.h"
#include "ir/reference/array.h"

namespace heddle::onnx {

// Evaluates values of a growing graph that depend on no parameter, on demand: shape arithmetic and everything that a
// handler asks to know. Results are rounded to the dtypes, as a device would store them, and kept.
class Folder {
 public:
  Folder(const ir::Graph& graph, Budget& budget) : graph_(graph), budget_(budget) {}

  bool is_constant(ir::ValueId v);
  // Requires is_constant(v). Throws kOutOfMemory when an intermediate result is unreasonably large, kLimit.
  Tensor fold(ir::ValueId v);
  // The parameters that `v` depends on.
  std::vector<ir::ValueId> parameters_of(ir::ValueId v) const;

 private:
  void classify();
  const ir::Array& evaluate(ir::ValueId v);

  const ir::Graph& graph_;
  Budget& budget_;
  std::vector<bool> varies_;  // per node, as far as classified
  std::unordered_map<ir::ValueId, ir::Array> known_;
};

}  // namespace heddle::onnx
