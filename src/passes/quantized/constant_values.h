#pragma once

#include <map>
#include <optional>
#include <vector>

#include "heddle/tensor.h"
#include "passes/names.h"

namespace heddle::passes {

// The values of subgraphs of constants, computed when they are asked for.
class ConstantValues {
 public:
  explicit ConstantValues(const ir::Graph& graph);

  // nullopt if the value is not constant, or too large for the operators that compute it.
  std::optional<Tensor> value_of(ValueId v) const;

 private:
  std::optional<Tensor> evaluated(ValueId v, const std::map<ValueId, Tensor>& values) const;

  const ir::Graph& graph_;
  std::vector<bool> constant_;  // by node
};

}  // namespace heddle::passes
