#pragma once

#include <string_view>

#include "ir/builder.h"

namespace heddle::onnx {

// ONNX's Cast. It differs from the primitive for narrow targets: floats wrap in integers of 4 and 2 bits, and f8e8m0
// rounds by `round_mode`: "up", "down" or "nearest" (ties up).
ir::ValueId onnx_cast(ir::Builder& b, ir::ValueId x, DType to, bool saturate, std::string_view round_mode);

}  // namespace heddle::onnx
