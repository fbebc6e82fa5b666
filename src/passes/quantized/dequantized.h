#pragma once

#include <initializer_list>
#include <map>
#include <optional>
#include <vector>

#include "ir/builder.h"
#include "ir/rewrite.h"
#include "passes/names.h"

namespace heddle::passes {

// A scale or a zero point: one number, or one number for each index of a dimension.
struct QuantParameter {
  ValueId value = 0;  // of rank 0, or of rank 1
  int64_t dim = -1;   // -1: one number

  bool is_scalar() const { return dim < 0; }
};

// A value (q - zero) * scale.
struct Dequantized {
  ValueId q = 0;                        // of i8 or u8, in the shape of the value
  std::optional<QuantParameter> zero;   // of i32, in the range of i8 or u8; not present if it is known to be zero
  std::optional<QuantParameter> scale;  // of f32
};

// Recognises dequantised values of the graph that a rewriter emits, by their algebra and not by the operators of a
// format: casts, a subtraction, a multiplication, and movements of data behind them. find() emits the same movements
// for the quantised value, and small nodes for the parameters. Those that stay without a reader are dropped.
class DequantizedFinder {
 public:
  explicit DequantizedFinder(ir::Rewriter& rewriter) : r_(rewriter) {}

  std::optional<Dequantized> find(ValueId value);

  // A value that was spread over a shape, without being spread; nullopt if it differs along more than one dimension.
  std::optional<QuantParameter> parameter(ValueId value);
  // True if two parameters are one value, or constants that are equal. No parameter equals none that is known to be 0.
  bool equal(const std::optional<QuantParameter>& a, const std::optional<QuantParameter>& b);
  // True if the zero point is known to be a number of the type of q, so that all q - zero lie in an interval of length
  // 255 that contains 0.
  bool is_centred(const Dequantized& operand);
  // True if a value is computed from constants only.
  bool is_constant(ValueId value);

  ir::Builder builder();

 private:
  std::optional<Dequantized> find_new(ValueId value);
  std::optional<Dequantized> after_subtraction(const Node& node);
  std::optional<Dequantized> after_multiplication(const Node& node);
  std::optional<Dequantized> moved(ValueId value, const Node& node);
  std::optional<Dequantized> concatenated(const Node& node);
  std::optional<QuantParameter> parameter_of(ValueId small, const Ints& dims);
  bool is_of(ValueId value, std::initializer_list<DType> types);

  ir::Rewriter& r_;
  std::map<ValueId, std::optional<Dequantized>> known_;
  std::vector<bool> constant_;  // by node of the emitted graph, as far as is_constant() has looked
  int depth_ = 0;               // of calls of find()
};

}  // namespace heddle::passes
