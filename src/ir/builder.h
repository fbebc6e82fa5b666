#pragma once

#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

#include "ir/graph.h"

namespace heddle::ir {

// A convenience layer over Graph for code that creates many nodes (front-ends, decompositions). It broadcasts the
// operands of binary ops as numpy does, creates constants from scalars, and writes the attributes of nodes. Every
// emitted node gets the current origins.
class Builder {
 public:
  explicit Builder(Graph& graph) : graph_(graph) {}

  Graph& graph() { return graph_; }
  void set_origins(std::vector<OriginId> origins) { origins_ = std::move(origins); }
  const std::vector<OriginId>& origins() const { return origins_; }

  const TensorType& type(ValueId v) const { return graph_.type(v); }
  const Shape& shape(ValueId v) const { return graph_.shape(v); }
  DType dtype(ValueId v) const { return graph_.dtype(v); }
  int rank(ValueId v) const { return static_cast<int>(shape(v).size()); }

  ValueId emit(Op op, std::vector<ValueId> inputs, Attrs attrs = {});
  std::vector<ValueId> emit_all(Op op, std::vector<ValueId> inputs, Attrs attrs = {});

  ValueId constant(Tensor value);
  // A rank-0 constant: `value`, rounded to `dtype`.
  ValueId scalar(DType dtype, double value);
  // A tensor filled with one value: a scalar constant and a broadcast.
  ValueId full(DType dtype, Shape shape, double value);
  ValueId iota(DType dtype, Shape shape, int64_t dim);
  ValueId ints(const Ints& values);  // i64 vector constant

  ValueId unary(Op op, ValueId x) { return emit(op, {x}); }
  // Broadcasts the operands against each other by numpy's rules. Their dtypes must be equal.
  ValueId binary(Op op, ValueId a, ValueId b);
  ValueId binary(Op op, ValueId a, double b);  // `b` becomes a constant of a's dtype
  ValueId select(ValueId condition, ValueId a, ValueId b);
  ValueId cast(ValueId x, DType to, bool saturate = true);  // emits no node if `x` has the dtype `to`

  ValueId add(ValueId a, ValueId b) { return binary(Op::kAdd, a, b); }
  ValueId sub(ValueId a, ValueId b) { return binary(Op::kSub, a, b); }
  ValueId mul(ValueId a, ValueId b) { return binary(Op::kMul, a, b); }
  ValueId div(ValueId a, ValueId b) { return binary(Op::kDiv, a, b); }
  ValueId max(ValueId a, ValueId b) { return binary(Op::kMax, a, b); }
  ValueId min(ValueId a, ValueId b) { return binary(Op::kMin, a, b); }
  ValueId sigmoid(ValueId x);

  // Broadcasts to a shape by numpy's rules, which may add leading dimensions. Emits no node if `x` has this shape.
  ValueId broadcast_to(ValueId x, const Shape& shape);
  ValueId broadcast(ValueId x, Shape shape, Ints dims);
  ValueId reshape(ValueId x, Shape shape);
  ValueId transpose(ValueId x, Ints perm);
  // Slices every dimension d to the range [starts[d], limits[d]). Strides are positive.
  ValueId slice(ValueId x, Ints starts, Ints limits, Ints strides = {});
  ValueId slice_dim(ValueId x, int64_t dim, int64_t start, int64_t limit);
  ValueId concat(std::span<const ValueId> parts, int64_t dim);
  ValueId pad(ValueId x, ValueId value, Ints low, Ints high);
  ValueId gather(ValueId data, ValueId indices, int64_t dim);
  // Reduces over `dims`. `kind`: "sum", "prod", "max", "min", "any" or "all". `keep`: reduced dimensions stay, with
  // extent 1.
  ValueId reduce(std::string_view kind, ValueId x, Ints dims, bool keep = false);
  ValueId mean(ValueId x, Ints dims, bool keep = false);
  // The product of numpy.matmul, with broadcasting of batch dimensions. Operands may have rank 1. `operand_bits` > 0:
  // the attribute of the dot with this name.
  ValueId matmul(ValueId a, ValueId b, int64_t operand_bits = 0);
  ValueId softmax(ValueId x, Ints dims);

 private:
  Graph& graph_;
  std::vector<OriginId> origins_;
};

// The shape that results from broadcasting two shapes by numpy's rules. Throws kInvalidNode if the shapes do not match.
Shape broadcast_shapes(const Shape& a, const Shape& b);

}  // namespace heddle::ir
