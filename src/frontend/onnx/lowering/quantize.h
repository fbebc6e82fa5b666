#pragma once

#include <optional>
#include <utility>

#include "frontend/onnx/node_context.h"
#include "ir/builder.h"

namespace heddle::onnx {

// Lowest and highest value of an integer type of up to 32 bits. Throws kUnsupportedType for other types.
std::pair<double, double> quantized_range(DType type);

// x / scale in f32, correctly rounded even if the compiler optimises divisions by constants. The quotient is then
// rounded to an integer, so its last bit decides ties. (f64 has enough bits that double rounding is exact.)
ir::ValueId exact_ratio(ir::Builder& b, ir::ValueId x, ir::ValueId scale);

// saturate(round(ratio) + zero_point) as `to`: the last step of every quantising operator. Rounds half to even. `ratio`
// is floating; the zero point has the shape of `ratio` or broadcasts to it.
ir::ValueId round_to_quantized(ir::Builder& b, ir::ValueId ratio, std::optional<ir::ValueId> zero_point, DType to);

// x quantised to bytes by the range of its elements, as DynamicQuantizeLinear does it.
struct DynamicallyQuantized {
  ir::ValueId value, scale, zero_point;
};
DynamicallyQuantized dynamically_quantized(ir::Builder& b, ir::ValueId x);

// The i32 product of two byte matrices after subtracting their zero points: one per matrix, or one per row of the left
// matrix and per column of the right one.
ir::ValueId integer_matmul(const NodeContext& ctx, ir::ValueId a, std::optional<ir::ValueId> a_zero, ir::ValueId w,
                           std::optional<ir::ValueId> w_zero);
// The real values of the quantised tensor at input i. Its scale and zero point are inputs `scale` and `scale` + 1.
ir::ValueId dequantized(const NodeContext& ctx, size_t i, size_t scale);
// A real tensor quantised to the type `like` with the scale and zero point at inputs `scale` and `scale` + 1.
ir::ValueId quantized(const NodeContext& ctx, ir::ValueId y, size_t scale, DType like);

}  // namespace heddle::onnx
