#include "frontend/onnx/lowering/narrow_cast.h"

namespace heddle::onnx {
namespace {

using ir::Builder;
using ir::Op;
using ir::ValueId;

// Shortens an f64 to an f32 of few bits, setting the last one if any dropped bit was set. Rounding to nearest first
// could reach the next power of two or the midpoint between two values.
ValueId shortened(Builder& b, ValueId x) {
  constexpr double kDropped = 0x1p40;
  const ValueId bits = b.emit(Op::kBitcast, {x}, {{"to", DType::kU64}});
  const ValueId low = b.binary(Op::kMod, bits, kDropped), high = b.sub(bits, low);
  const ValueId odd = b.binary(Op::kOr, high, kDropped);
  const ValueId few = b.select(b.binary(Op::kNe, low, 0.0), odd, high);
  return b.cast(b.emit(Op::kBitcast, {few}, {{"to", DType::kF64}}), DType::kF32);
}

// A power of two is its exponent's code, which the bits of an f32 hold; what the mantissa adds decides on rounding.
// Below the smallest normal f32, where that code is 0, the smallest power 2^-127 is the mantissa 0x400000.
ValueId to_e8m0(Builder& b, ValueId x, bool saturate, std::string_view round_mode) {
  const ValueId single = b.dtype(x) == DType::kF64 ? shortened(b, x) : b.cast(x, DType::kF32);
  const ValueId bits = b.emit(Op::kBitcast, {single}, {{"to", DType::kU32}});
  const auto number = [&](uint32_t value) { return b.full(DType::kU32, b.shape(bits), value); };
  const ValueId code = b.binary(Op::kAnd, b.binary(Op::kShr, bits, number(23)), number(0xff));
  const ValueId mantissa = b.binary(Op::kAnd, bits, number(0x7fffff));
  ValueId rounded = code;
  if (round_mode != "down") {
    const bool up = round_mode == "up";
    const ValueId normal = b.binary(Op::kGe, mantissa, number(up ? 1 : 0x400000));
    const ValueId tiny = b.binary(Op::kGe, mantissa, number(up ? 0x400001 : 0x600000));
    const ValueId more = b.select(b.binary(Op::kEq, code, number(0)), tiny, normal);
    rounded = b.add(code, b.cast(more, DType::kU32));
  }
  rounded = b.min(rounded, number(saturate ? 254 : 255));
  rounded = b.select(b.unary(Op::kIsNan, x), number(255), rounded);
  return b.emit(Op::kBitcast, {b.cast(rounded, DType::kU8)}, {{"to", DType::kF8E8M0}});
}

}  // namespace

ValueId onnx_cast(Builder& b, ValueId x, DType to, bool saturate, std::string_view round_mode) {
  const DType from = b.dtype(x);
  if (is_float(from) && is_int(to) && bits_of(to) < 8) return b.cast(b.cast(x, DType::kI32), to);
  if (is_float(from) && to == DType::kF8E8M0 && from != to) return to_e8m0(b, x, saturate, round_mode);
  return b.cast(x, to, saturate);
}

}  // namespace heddle::onnx
