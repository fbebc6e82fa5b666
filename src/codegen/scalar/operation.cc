#include "codegen/scalar/operation.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "codegen/scalar/spelling.h"

namespace heddle::codegen {

using ir::Op;
using schedule::Expr;
using schedule::ExprPool;

namespace {

bool is_narrow_float(DType dtype) {
  return is_float(dtype) && dtype != DType::kF64 && dtype != DType::kF32;
}

// Integers of less than a byte.
bool is_narrow_int(DType dtype) {
  return dtype == DType::kI4 || dtype == DType::kI2 || dtype == DType::kU4 || dtype == DType::kU2;
}

// True if a cast to a narrow float would round twice, first to f32. Integers that f32 rounds exceed the range of every
// narrow float but bf16.
bool rounds_in_float(DType from, DType to) {
  return from == DType::kF64 ? is_narrow_float(to) : to == DType::kBF16 && is_int(from) && bits_of(from) > 24;
}

std::string cast(const Expr& e, const TextValue& from) {
  const std::string_view to = computed_type(e.dtype);
  const DType source = from.dtype;
  std::string text = from.text;
  if (source == DType::kBool) return fmt::format("tile::from_mask<{}>({})", to, text);
  if (is_float(e.dtype)) {
    if (rounds_in_float(source, e.dtype)) {
      text = fmt::format("tile::to_odd({})", text);
    } else if (computed_type(source) != to) {
      text = fmt::format("tile::convert<{}>({})", to, text);
    }
    // A narrowing cast rounds, unless it may leave that to a store; between equal precisions, or widening, there is
    // nothing to round.
    if (is_narrow_float(e.dtype) && source != e.dtype && e.hi == 0) {
      text = fmt::format("tile::round_storage<{}, {}>({})", storage_type(e.dtype), e.lo != 0, text);
    }
    return text;
  }
  const int bits = bits_of(e.dtype);
  if (is_narrow_int(e.dtype)) {
    return fmt::format("tile::cast_bits<{}, {}>({})", to, bits, text);
  }
  return fmt::format("tile::{}<{}>({})", is_float(source) ? "cast" : "convert", to, text);
}

// An op of masks, which get the width of the widest.
std::string logic(const Expr& e, const std::vector<TextValue>& args, int& mask_bytes) {
  for (size_t i = e.op == Op::kSelect ? 1 : 0; i < args.size(); ++i)
    mask_bytes = std::max({mask_bytes, args[i].mask_bytes, 1});
  std::vector<std::string> masks;
  for (const TextValue& arg : args) masks.push_back(as_mask(arg, mask_bytes));
  return applied_to_masks(e.op, masks);
}

std::string operator_text(const ExprPool& pool, const Expr& e, std::vector<TextValue>& args, int& mask_bytes) {
  const DType operand = args.back().dtype;
  // A bool in memory is the byte 0 or 1, so its bits are its value.
  const bool of_bool = e.op == Op::kBitcast && (operand == DType::kBool || e.dtype == DType::kBool);
  if (e.op == Op::kCast || of_bool) {
    if (e.dtype != DType::kBool) return cast(e, args[0]);
    mask_bytes =
        args[0].mask_bytes > 0 ? args[0].mask_bytes : static_cast<int>(size_of(schedule::compute_dtype(operand)));
    return args[0].mask_bytes > 0 ? args[0].text : fmt::format("tile::to_mask({})", args[0].text);
  }
  if (operand == DType::kBool) return logic(e, args, mask_bytes);
  if (e.dtype == DType::kBool) mask_bytes = static_cast<int>(size_of(schedule::compute_dtype(operand)));
  // A constant goes first: then its NaN check folds.
  if ((e.op == Op::kMax || e.op == Op::kMin) && pool[e.args[1]].kind == Expr::Kind::kConstant)
    std::swap(args[0], args[1]);
  std::vector<std::string> operands;
  for (const TextValue& arg : args) operands.push_back(arg.text);
  switch (e.op) {
    case Op::kMul:
      if (e.lo != 0 && is_float(e.dtype)) return call("tile::mul_rounded", operands);
      break;
    case Op::kPow:
      if (!is_float(e.dtype)) return call("tile::pow_int", operands);
      break;
    case Op::kShr:
      if (is_narrow_int(e.dtype)) return call(fmt::format("tile::shr<{}>", bits_of(e.dtype)), operands);
      break;
    case Op::kIsInf:
      return fmt::format("tile::is_inf({}, {}, {})", operands[0], e.lo != 0, e.hi != 0);
    case Op::kBitcast:
      return call(fmt::format("tile::bit_cast<{}>", computed_type(e.dtype)), operands);
    default:
      break;
  }
  return applied(e.op, operands);
}

}  // namespace

TextValue operation(const ExprPool& pool, const Expr& e, std::vector<TextValue> args) {
  TextValue result{"", e.dtype, args[0].wide};
  result.text = operator_text(pool, e, args, result.mask_bytes);
  if (is_narrow_int(e.dtype) && e.op != Op::kCast && e.op != Op::kSelect) {
    result.text = fmt::format("tile::cast_bits<{}, {}>({})", computed_type(e.dtype), bits_of(e.dtype), result.text);
  }
  return result;
}

}  // namespace heddle::codegen
