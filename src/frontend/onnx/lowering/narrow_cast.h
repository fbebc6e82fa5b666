#pragma once

#include <string_view>

#include "ir/builder.h"

namespace heddle::onnx {

// ONNX's Cast. It differs from the IR's primitive cast for narrow target types. Floats wrap around when they are cast
// to integers of 4 or 2 bits. Casts to f8e8m0 round by `round_mode`: "up", "down" or "nearest" (ties up).
ir::ValueId onnx_cast(ir::Builder& b, ir::ValueId x, DType to, bool saturate, std::string_view round_mode);

}  // namespace heddle::onnx
