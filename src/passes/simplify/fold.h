#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "passes/pass.h"

namespace heddle::passes {

// Keeps the results of folding large constants, for pipelines that run on one model for several sets of shapes. Results
// are then made only once and share memory. A result that two consecutive runs did not use is dropped.
class FoldMemo {
 public:
  // Returns the known results, else makes them. They depend on `node` by its op and attributes only.
  using Make = std::function<std::optional<std::vector<Tensor>>()>;
  std::optional<std::vector<Tensor>> get(const ir::Node& node, const std::vector<Tensor>& operands, const Make& make);
  // Call when a pipeline begins.
  void next_run();

 private:
  struct Entry {
    std::vector<Tensor> operands, results;  // operands are kept, so that no other constant gets their address
    uint64_t used = 0;
  };
  std::map<std::string, Entry> entries_;
  uint64_t run_ = 0;
};

// Evaluates nodes whose operands are constants, iotas or broadcasts of these, if the result is not much larger than its
// operands. A broadcast or an iota alone is left, since it costs nothing in a kernel.
ir::Graph fold(const ir::Graph& graph, const PassContext& context);

}  // namespace heddle::passes
