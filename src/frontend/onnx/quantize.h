#pragma once

#include <optional>
#include <utility>

#include "ir/builder.h"

namespace heddle::onnx {

// Lowest and highest value of an integer type of up to 32 bits. Throws kUnsupportedType for others.
std::pair<double, double> quantized_range(DType type);

// saturate(round(ratio) + zero_point) as `to`: the end of every quantising operator. Rounds half to even. `ratio` is
// floating; the zero point has its shape or broadcasts to it.
ir::ValueId round_to_quantized(ir::Builder& b, ir::ValueId ratio, std::optional<ir::ValueId> zero_point, DType to);

}  // namespace heddle::onnx
