#pragma once

#include <functional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/graph.h"
#include "ir/reference/array.h"

namespace heddle::ir {

enum class AttrKind : uint8_t { kInt, kReal, kText, kInts, kDType, kTensor, kGraph };

struct AttrSpec {
  std::string_view name;
  AttrKind kind;
  bool required = true;
};

// The types of a node's operands, which the graph owns.
class OperandTypes {
 public:
  explicit OperandTypes(std::span<const TensorType* const> types) : types_(types) {}

  const TensorType& operator[](size_t i) const { return *types_[i]; }
  size_t size() const { return types_.size(); }
  OperandTypes subspan(size_t first) const { return OperandTypes(types_.subspan(first)); }

 private:
  std::span<const TensorType* const> types_;
};

// A node, as passed to its inference function (InferContext) or its evaluation function (EvalContext).
struct InferContext {
  Op op;
  OperandTypes inputs;
  const Attrs& attrs;
};

struct EvalContext {
  Op op;
  std::span<const Array* const> inputs;
  std::span<const TensorType> outputs;  // the inferred types
  const Attrs& attrs;
  bool round;  // see EvalOptions::round
};

// Returns the results of an evaluation as a vector. A braced list would copy every element.
template <typename... Arrays>
std::vector<Array> results_of(Arrays&&... arrays) {
  std::vector<Array> results;
  results.reserve(sizeof...(Arrays));
  (results.push_back(std::forward<Arrays>(arrays)), ...);
  return results;
}

// One primitive: its operands, attributes, result types and reference evaluation. Each family (ir/ops/<family>.cc)
// exports a table of schemas. ir/ops/families.h joins the tables; there is no registration at start-up.
struct OpSchema {
  Op op;
  int min_inputs, max_inputs;  // max_inputs < 0: any number
  std::vector<AttrSpec> attrs;
  // Returns the result types. Throws kInvalidNode; the error's `why` states the violated rule, with the shapes and
  // dtypes.
  std::vector<TensorType> (*infer)(const InferContext&);
  // Returns one array per result. Null for ops whose values the evaluator itself supplies (parameter).
  std::vector<Array> (*eval)(const EvalContext&);
};

const OpSchema& schema(Op op);

}  // namespace heddle::ir
