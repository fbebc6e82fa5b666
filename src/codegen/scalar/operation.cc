#include "codegen/scalar/operation.h"

#include <fmt/format.h>

#include <utility>

#include "base/check.h"

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
    // A narrowing cast rounds; between equal precisions, or widening, there is nothing to round.
    if (is_narrow_float(e.dtype) && source != e.dtype) {
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

// and, or, xor, not, comparisons and select where operands or result are masks.
std::string logic(const Expr& e, std::vector<TextValue>& args, int& mask_bytes) {
  const auto bytes_of = [](const TextValue& v) { return v.mask_bytes > 0 ? v.mask_bytes : 1; };
  if (e.op == Op::kNot) {
    mask_bytes = bytes_of(args[0]);
    return fmt::format("~{}", as_mask(args[0], mask_bytes));
  }
  if (args.size() < 2) fail(ErrorCode::kUnsupportedOperator, std::string(to_string(e.op)), "it is not defined on bool");
  const TextValue &a = args[args.size() - 2], &b = args[args.size() - 1];
  mask_bytes = std::max(a.literal ? 1 : bytes_of(a), b.literal ? 1 : bytes_of(b));
  const std::string x = as_mask(a, mask_bytes), y = as_mask(b, mask_bytes);
  switch (e.op) {
    case Op::kSelect:
      return fmt::format("tile::select({}, {}, {})", as_mask(args[0], mask_bytes), x, y);
    case Op::kAnd:
    case Op::kMul:
    case Op::kMin:
      return fmt::format("{} & {}", x, y);
    case Op::kOr:
    case Op::kMax:
    case Op::kAdd:
      return fmt::format("{} | {}", x, y);
    case Op::kXor:
    case Op::kNe:
      return fmt::format("{} ^ {}", x, y);
    case Op::kEq:
      return fmt::format("~({} ^ {})", x, y);
    case Op::kLt:
      return fmt::format("~{} & {}", x, y);
    case Op::kLe:
      return fmt::format("~{} | {}", x, y);
    case Op::kGt:
      return fmt::format("{} & ~{}", x, y);
    case Op::kGe:
      return fmt::format("{} | ~{}", x, y);
    default:
      fail(ErrorCode::kUnsupportedOperator, std::string(to_string(e.op)), "it is not defined on bool");
  }
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
  std::string_view name = ir::text_of(e.op);
  switch (e.op) {
    case Op::kMax:
    case Op::kMin:
      // A constant goes first: then its NaN check folds.
      if (pool[e.args[1]].kind == Expr::Kind::kConstant) std::swap(args[0], args[1]);
      break;
    case Op::kMul:
      if (e.lo != 0 && is_float(e.dtype)) name = "tile::mul_rounded";
      break;
    case Op::kPow:
      if (!is_float(e.dtype)) name = "tile::pow_int";
      break;
    case Op::kShr:
      if (is_narrow_int(e.dtype)) {
        return fmt::format("tile::shr<{}>({}, {})", bits_of(e.dtype), args[0].text, args[1].text);
      }
      break;
    case Op::kIsInf:
      return fmt::format("tile::is_inf({}, {}, {})", args[0].text, e.lo != 0, e.hi != 0);
    case Op::kBitcast:
      return fmt::format("tile::bit_cast<{}>({})", computed_type(e.dtype), args[0].text);
    default:
      break;
  }
  if (name.empty()) fail(ErrorCode::kUnsupportedOperator, std::string(to_string(e.op)), "kernels cannot compute it");
  if (name.starts_with("tile::")) {
    std::string list = args[0].text;
    for (size_t i = 1; i < args.size(); ++i) list += ", " + args[i].text;
    return fmt::format("{}({})", name, list);
  }
  return args.size() == 1 ? fmt::format("{}{}", name, args[0].text)
                          : fmt::format("{} {} {}", args[0].text, name, args[1].text);
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
