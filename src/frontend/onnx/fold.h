#pragma once

#include <unordered_map>
#include <vector>

#include "frontend/onnx/reader/budget.h"
#include "ir/graph.h"
#include "ir/reference/array.h"

namespace heddle::onnx {

// Evaluates, on demand, those values of a growing graph that depend on no parameter: shape arithmetic, and any other
// value that an operator handler has to know. Results are cached. They are rounded to their dtypes, as on a device.
class Folder {
 public:
  Folder(const ir::Graph& graph, Budget& budget) : graph_(graph), budget_(budget) {}

  bool is_constant(ir::ValueId v);
  // Evaluates `v`, for which is_constant(v) must hold. Throws kOutOfMemory if an intermediate result is unreasonably
  // large, and kLimit if the evaluation takes too long.
  Tensor fold(ir::ValueId v);
  // The parameters that `v` depends on.
  std::vector<ir::ValueId> parameters_of(ir::ValueId v) const;

 private:
  void classify();
  const ir::Array& evaluate(ir::ValueId v);

  const ir::Graph& graph_;
  Budget& budget_;
  std::vector<bool> varies_;  // for each node; covers the nodes classified so far
  std::unordered_map<ir::ValueId, ir::Array> known_;
};

}  // namespace heddle::onnx
