#pragma once

#include <optional>
#include <utility>

#include "frontend/onnx/node_context.h"
#include "ir/builder.h"

namespace heddle::onnx {

// Lowest and highest value of an integer type of up to 32 bits. Throws kUnsupportedType for others.
std::pair<double, double> quantized_range(DType type);

// x / scale in f32, correctly rounded whatever the compiler does to divisions by constants: the quotient is rounded to
// an integer next, where the last bit decides ties. (f64 has enough bits that rounding twice is rounding once.)
ir::ValueId exact_ratio(ir::Builder& b, ir::ValueId x, ir::ValueId scale);

// saturate(round(ratio) + zero_point) as `to`: the end of every quantising operator. Rounds half to even. `ratio` is
// floating; the zero point has its shape or broadcasts to it.
ir::ValueId round_to_quantized(ir::Builder& b, ir::ValueId ratio, std::optional<ir::ValueId> zero_point, DType to);

// x as bytes by the range of its own elements: what DynamicQuantizeLinear gives.
struct DynamicallyQuantized {
  ir::ValueId value, scale, zero_point;
};
DynamicallyQuantized dynamically_quantized(ir::Builder& b, ir::ValueId x);

// The product of two matrices of bytes in i32, each less its zero points: one, or one for each row of the left and each
// column of the right matrix.
ir::ValueId integer_matmul(const NodeContext& ctx, ir::ValueId a, std::optional<ir::ValueId> a_zero, ir::ValueId w,
                           std::optional<ir::ValueId> w_zero);
// The number behind a quantised tensor at input i, whose scale and zero point are the two inputs from `scale` on.
ir::ValueId dequantized(const NodeContext& ctx, size_t i, size_t scale);
// A real tensor quantised by the scale and zero point at inputs `scale` and the next, in the type of `like`.
ir::ValueId quantized(const NodeContext& ctx, ir::ValueId y, size_t scale, DType like);

}  // namespace heddle::onnx
