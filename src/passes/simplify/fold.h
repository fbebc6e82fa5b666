#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "passes/pass.h"

namespace heddle::passes {

// What folding made of large constants, for pipelines that run on one model for several sets of shapes: results are
// then not only made once, but lie in the same memory. What two runs in a row did not use is dropped.
class FoldMemo {
 public:
  // Makes the results where they are not known. `node` is described by its op and attributes.
  using Make = std::function<std::optional<std::vector<Tensor>>()>;
  std::optional<std::vector<Tensor>> get(const ir::Node& node, const std::vector<Tensor>& operands, const Make& make);
  // A pipeline begins.
  void next_run();

 private:
  struct Entry {
    std::vector<Tensor> operands, results;  // operands stay, so that no other constant gets their address
    uint64_t used = 0;
  };
  std::map<std::string, Entry> entries_;
  uint64_t run_ = 0;
};

// Evaluates nodes whose operands are constants, iotas or broadcasts of these, where the result is not much larger than
// what it was made of: a broadcast or an iota alone costs nothing in a kernel, and is left.
ir::Graph fold(const ir::Graph& graph, const PassContext& context);

}  // namespace heddle::passes
