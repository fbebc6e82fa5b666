#pragma once

#include <vector>

#include "frontend/onnx/node_context.h"
#include "ir/builder.h"

// Helpers that several operator families need. Builder::shape() returns a reference into the graph, so copy a shape
// that must survive the next emitted node.
namespace heddle::onnx {

using ir::Ints;
using ir::Op;
using ir::ValueId;

// Returns `count` numbers: first, first + 1, ...
Ints int_range(int64_t count, int64_t first = 0);
// Makes a constant of the given type from doubles (rounded to the type) or from integers.
ValueId real_constant(ir::Builder& b, DType dtype, Shape shape, std::vector<double> values);
ValueId int_constant(ir::Builder& b, Shape shape, Ints values, DType dtype = DType::kI64);
// Throws kOutOfMemory if an index table of this shape is too large to be computed during import.
void check_table(const NodeContext& ctx, const Shape& shape);
// Reshapes a vector over channels to [1, C, 1, 1, ...] for a tensor of the given rank.
ValueId per_channel(ir::Builder& b, ValueId vector, int64_t rank);
// The two operands of an elementwise operator. Before opset 7, the second operand is broadcast only if the attribute
// `broadcast` is set. Its dimensions then match those of the first operand from dimension `axis` on, or the last
// dimensions if there is no `axis`.
struct Operands {
  ValueId lhs, rhs;
};
Operands binary_operands(const NodeContext& ctx);
// Requires inference mode. Before opset 7, `is_test` distinguishes inference from training. The default is training,
// but exporters that omit the attribute mean inference. So only an explicit 0 counts as training, which throws
// kUnsupportedOperator.
void require_inference(const NodeContext& ctx);
// Inserts dimensions of extent 1 into x. `axes`: their positions in the result, sorted.
ValueId unsqueeze(ir::Builder& b, ValueId x, const Ints& axes);
// Returns x with dimension `axis` moved to position `to`.
ValueId move_axis(ir::Builder& b, ValueId x, int64_t axis, int64_t to);
// Returns the type in which statistics of x are computed: f32 for narrower floats.
DType wide_dtype(DType dtype);

ValueId square(ir::Builder& b, ValueId x);
// Computes log(1 + exp(x)) without overflow.
ValueId softplus(ir::Builder& b, ValueId x);
// Computes 0.5 x (1 + erf(x / sqrt 2)), or its tanh approximation.
ValueId gelu(ir::Builder& b, ValueId x, bool tanh_form);
// (x - mean) / sqrt(variance + epsilon) over `dims`.
struct Normalized {
  ValueId value, mean, inv_std;  // mean and inv_std keep the dims as 1
};
Normalized normalize(ir::Builder& b, ValueId x, const Ints& dims, double epsilon);

}  // namespace heddle::onnx
