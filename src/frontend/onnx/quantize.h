#pragma once

#include <optional>
#include <utility>

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

}  // namespace heddle::onnx
