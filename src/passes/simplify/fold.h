#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "passes/pass.h"

namespace heddle::passes {

// Caches the results of folding large constants, for pipelines that run on the same model for several sets of shapes.
// Each result is thus computed only once, and its memory is shared. A result that two consecutive runs did not use is
// dropped.
class FoldMemo {
 public:
  // Returns the cached results for `node` with these operands. If there are none, calls `make` and caches its results,
  // which must depend only on the operands and on the node's op and attributes.
  using Make = std::function<std::optional<std::vector<Tensor>>()>;
  std::optional<std::vector<Tensor>> get(const ir::Node& node, const std::vector<Tensor>& operands, const Make& make);
  // Call this when a pipeline run begins.
  void next_run();

 private:
  struct Entry {
    std::vector<Tensor> operands, results;  // operands stay alive, so that no other constant gets their addresses
    uint64_t used = 0;
  };
  std::map<std::string, Entry> entries_;
  uint64_t run_ = 0;
};

// Evaluates each node whose operands are constants, iotas or broadcasts of these, if the result is not much larger than
// the operands. Leaves broadcasts and iotas themselves in the graph, since kernels compute them at no cost.
ir::Graph fold(const ir::Graph& graph, const PassContext& context);

}  // namespace heddle::passes
