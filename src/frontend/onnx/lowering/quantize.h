#pragma once

#include <optional>
#include <utility>

#include "frontend/onnx/node_context.h"
#include "ir/builder.h"

namespace heddle::onnx {

// The lowest and the highest value of an integer type of up to 32 bits. Throws kUnsupportedType for other types.
std::pair<double, double> quantized_range(DType type);

// x / scale in f32, correctly rounded even if the compiler optimises divisions by constants. The last bit matters: the
// quotient is then rounded to an integer, and its last bit decides ties. (The division is done in f64, which has enough
// bits that rounding twice is exact.)
ir::ValueId exact_ratio(ir::Builder& b, ir::ValueId x, ir::ValueId scale);

// saturate(round(ratio) + zero_point) as type `to`, the last step of every quantising operator. Ties round to even.
// `ratio` is floating-point. The zero point has the shape of `ratio` or broadcasts to it.
ir::ValueId round_to_quantized(ir::Builder& b, ir::ValueId ratio, std::optional<ir::ValueId> zero_point, DType to);

// x quantised to bytes, with a scale and zero point from the range of its elements, as DynamicQuantizeLinear does.
struct DynamicallyQuantized {
  ir::ValueId value, scale, zero_point;
};
DynamicallyQuantized dynamically_quantized(ir::Builder& b, ir::ValueId x);

// The i32 product of two byte matrices from which the zero points are subtracted first. There is one zero point per
// matrix, or one per row of `a` and one per column of `w`.
ir::ValueId integer_matmul(const NodeContext& ctx, ir::ValueId a, std::optional<ir::ValueId> a_zero, ir::ValueId w,
                           std::optional<ir::ValueId> w_zero);
// The dequantised tensor of input `i`. Inputs `scale` and `scale` + 1 are its scale and zero point.
ir::ValueId dequantized(const NodeContext& ctx, size_t i, size_t scale);
// A floating-point tensor, quantised to the type `like`. Inputs `scale` and `scale` + 1 are the scale and zero point.
ir::ValueId quantized(const NodeContext& ctx, ir::ValueId y, size_t scale, DType like);

}  // namespace heddle::onnx
