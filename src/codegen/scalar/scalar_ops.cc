#include "base/check.h"
#include "codegen/scalar/scalar.h"

namespace heddle::codegen {

using ir::Op;
using schedule::Expr;
using schedule::ExprId;

namespace {

// "tile::exp": ops that are one function of the tile library, by their IR name.
bool is_library_call(Op op) {
  switch (op) {
    case Op::kAbs:
    case Op::kSign:
    case Op::kFloor:
    case Op::kCeil:
    case Op::kTrunc:
    case Op::kSqrt:
    case Op::kRsqrt:
    case Op::kExp:
    case Op::kExpm1:
    case Op::kLog:
    case Op::kLog1p:
    case Op::kSin:
    case Op::kCos:
    case Op::kTan:
    case Op::kAsin:
    case Op::kAcos:
    case Op::kAtan:
    case Op::kSinh:
    case Op::kCosh:
    case Op::kTanh:
    case Op::kAsinh:
    case Op::kAcosh:
    case Op::kAtanh:
    case Op::kErf:
    case Op::kRem:
    case Op::kMod:
    case Op::kPow:
    case Op::kAtan2:
    case Op::kShl:
    case Op::kShr:
      return true;
    default:
      return false;
  }
}

const char* infix(Op op) {
  switch (op) {
    case Op::kAdd:
      return "+";
    case Op::kSub:
      return "-";
    case Op::kMul:
      return "*";
    case Op::kDiv:
      return "/";
    case Op::kAnd:
      return "&";
    case Op::kOr:
      return "|";
    case Op::kXor:
      return "^";
    case Op::kEq:
      return "==";
    case Op::kNe:
      return "!=";
    case Op::kLt:
      return "<";
    case Op::kLe:
      return "<=";
    case Op::kGt:
      return ">";
    case Op::kGe:
      return ">=";
    default:
      return nullptr;
  }
}

bool is_narrow_float(DType dtype) {
  return is_float(dtype) && dtype != DType::kF64 && dtype != DType::kF32;
}

bool is_narrow_int(DType dtype) {
  return dtype == DType::kI4 || dtype == DType::kI2 || dtype == DType::kU4 || dtype == DType::kU2;
}

}  // namespace

std::string ScalarEmitter::cast(const Expr& e, const TextValue& from) {
  const std::string_view to = computed_type(e.dtype);
  const DType source = from.dtype;
  std::string text = from.text;
  if (e.dtype == DType::kBool) return text;  // the caller made a mask of it
  if (source == DType::kBool) return fmt::format("tile::from_mask<{}>({})", to, text);
  if (is_float(e.dtype)) {
    if (computed_type(source) != to) text = fmt::format("tile::convert<{}>({})", to, text);
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
std::string ScalarEmitter::logic(const Expr& e, std::vector<TextValue>& args, int& mask_bytes) {
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

std::string ScalarEmitter::operation(const Expr& e, std::vector<TextValue>& args, int& mask_bytes) {
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
  if (e.op == Op::kSelect) {
    return fmt::format("tile::select({}, {}, {})", args[0].text, args[1].text, args[2].text);
  }
  if (e.dtype == DType::kBool) mask_bytes = static_cast<int>(size_of(schedule::compute_dtype(operand)));
  if (e.op == Op::kMax || e.op == Op::kMin) {
    // A constant goes first: then its NaN check folds.
    const bool swap = pool_[e.args[1]].kind == Expr::Kind::kConstant;
    return fmt::format("tile::{}({}, {})", to_string(e.op), args[swap].text, args[!swap].text);
  }
  if (const char* sign = infix(e.op)) return fmt::format("{} {} {}", args[0].text, sign, args[1].text);
  if (is_library_call(e.op)) {
    std::string name(to_string(e.op));
    if (e.op == Op::kPow && !is_float(e.dtype)) name = "pow_int";
    if (e.op == Op::kShr && is_narrow_int(e.dtype)) name = fmt::format("shr<{}>", bits_of(e.dtype));
    std::string list = args[0].text;
    for (size_t i = 1; i < args.size(); ++i) list += ", " + args[i].text;
    return fmt::format("tile::{}({})", name, list);
  }
  switch (e.op) {
    case Op::kNeg:
      return fmt::format("-{}", args[0].text);
    case Op::kNot:
      return fmt::format("~{}", args[0].text);
    case Op::kRound:
      return fmt::format("tile::round_even({})", args[0].text);
    case Op::kIsNan:
      return fmt::format("tile::is_nan({})", args[0].text);
    case Op::kIsInf:
      return fmt::format("tile::is_inf({}, {}, {})", args[0].text, e.lo != 0, e.hi != 0);
    case Op::kBitcast:
      return fmt::format("tile::bit_cast<{}>({})", computed_type(e.dtype), args[0].text);
    default:
      fail(ErrorCode::kUnsupportedOperator, std::string(to_string(e.op)), "it has no text for the CPU");
  }
}

TextValue ScalarEmitter::write_op(ExprId e) {
  const Expr& expr = pool_[e];
  const bool is_wide = wide(e);
  std::vector<TextValue> args;
  bool shared_divisor = false;
  for (ExprId arg : expr.args) {
    TextValue v = value(arg);
    shared_divisor = is_wide && !v.wide && is_float(v.dtype);
    // Constants become vectors here; what is shared by all lanes is spread where another operand is not.
    const bool condition_of_select = expr.op == Op::kSelect && args.empty();
    v.text = widened(v, is_wide);
    if (v.literal && v.dtype == DType::kBool) v.mask_bytes = 1;
    v.literal = false;
    v.wide = is_wide;
    if (condition_of_select && v.mask_bytes == 0) v = {fmt::format("tile::to_mask({})", v.text), v.dtype, is_wide, 1};
    args.push_back(std::move(v));
  }
  TextValue result{"", expr.dtype, is_wide};
  std::string text;
  if (const auto divisor = expr.op == Op::kDiv ? divisors_.find(expr.args[1]) : divisors_.end();
      divisor != divisors_.end()) {
    text = fmt::format("{}.divide({})", divisor->second.first, args[0].text);
  } else if (expr.op == Op::kDiv && shared_divisor) {
    text = fmt::format("tile::divide_by({}, {})", args[0].text, args[1].text);
  } else {
    text = operation(expr, args, result.mask_bytes);
  }
  if (is_narrow_int(expr.dtype) && expr.op != Op::kCast && expr.op != Op::kSelect) {
    text = fmt::format("tile::cast_bits<{}, {}>({})", computed_type(expr.dtype), bits_of(expr.dtype), text);
  }
  result.text = declare(e, text);
  return keep(e, std::move(result));
}

}  // namespace heddle::codegen
