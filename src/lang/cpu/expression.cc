#include "lang/cpu/expression.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/check.h"
#include "lang/cpu/types.h"

namespace heddle::lang::cpu {
namespace {

using Operands = std::vector<std::string>;

std::string rounded(const Type& type, const std::string& text) {
  return is_rounded(type) ? fmt::format("round_storage<{}, true>({})", memory_type(type.element), text) : text;
}

std::string call(std::string_view function, const Operands& a) {
  return fmt::format("{}({})", function, fmt::join(a, ", "));
}

// Bits of i1: arithmetic modulo 2.
std::string mask_text(const Op& op, const Operands& a) {
  switch (op.code) {
    case OpCode::kAdd:
    case OpCode::kSub:
    case OpCode::kXor:
      return fmt::format("{} ^ {}", a[0], a[1]);
    case OpCode::kMul:
    case OpCode::kMin:
    case OpCode::kAnd:
      return fmt::format("{} & {}", a[0], a[1]);
    case OpCode::kMax:
    case OpCode::kOr:
      return fmt::format("{} | {}", a[0], a[1]);
    case OpCode::kFma:
      return fmt::format("({} & {}) ^ {}", a[0], a[1], a[2]);
    default:
      return fmt::format("~{}", a[0]);
  }
}

std::string compare_masks(OpCode code, const Operands& a) {
  if (code == OpCode::kEq) return fmt::format("~({} ^ {})", a[0], a[1]);
  if (code == OpCode::kNe) return fmt::format("{} ^ {}", a[0], a[1]);
  if (code == OpCode::kLt) return fmt::format("~{} & {}", a[0], a[1]);
  if (code == OpCode::kLe) return fmt::format("~{} | {}", a[0], a[1]);
  if (code == OpCode::kGt) return fmt::format("{} & ~{}", a[0], a[1]);
  return fmt::format("{} | ~{}", a[0], a[1]);
}

std::string compare(const Op& op, const Type& type, const Operands& a) {
  if (is_mask(type)) return compare_masks(op.code, a);
  const std::string text = fmt::format("{} {} {}", a[0], ir::text_of(op.code), a[1]);
  return buffer_size(type) == 4 ? text : fmt::format("convert_mask<4>({})", text);
}

std::string cast(const Op& op, const Type& from, const Type& to, const std::string& a) {
  if (from.element == to.element) return a;
  if (is_mask(to)) return fmt::format("to_bool({})", a);
  const std::string lanes = lane_type(to);
  if (is_mask(from)) return fmt::format("from_mask<{}>({})", lanes, a);
  if (is_float(from.element) && !is_float(to.element)) return fmt::format("cast<{}>({})", lanes, a);
  const bool truncates = op.attributes.word("rounding") == "rtz" && is_float(from.element);
  if (truncates && from.element == Element::kF64 && to.element == Element::kF32) {
    return fmt::format("truncate_double({})", a);
  }
  const std::string converted = lane_type(from) == lanes ? a
                                : is_rounded(to)         ? fmt::format("to_odd({})", a)
                                                         : fmt::format("convert<{}>({})", lanes, a);
  if (truncates && is_rounded(to)) {
    return fmt::format("truncate_storage<{}>({})", memory_type(to.element),
                       from.element == Element::kF64 ? fmt::format("truncate_double({})", a) : converted);
  }
  return rounded(to, converted);
}

std::string bitcast(const Type& from, const Type& to, const std::string& a) {
  const auto memory = [](const Type& type) { return type.pointer ? "int64_t" : memory_type(type.element); };
  if (memory(from) == memory(to)) return a;
  return fmt::format("from_bits<{}>(to_bits<{}>({}))", memory(to), memory(from), a);
}

std::string clamp(const Op& op, const Type& type, const Operands& a) {
  const std::string inside = fmt::format("min_number(max_number({}, {}), {})", a[0], a[1], a[2]);
  if (op.attributes.word("nan") != "propagate" || !is_float(type.element)) return inside;
  return fmt::format("select(is_nan({0}), {0}, {1})", a[0], inside);
}

std::string function_name(const Op& op) {
  const bool numbers = (op.code == OpCode::kMin || op.code == OpCode::kMax) && op.attributes.word("nan") != "propagate";
  return fmt::format("{}{}", ir::text_of(op.code), numbers ? "_number" : "");
}

std::string arithmetic(const Op& op, const Type& type, const Operands& a) {
  const bool integer = !is_float(type.element);
  switch (op.code) {
    case OpCode::kAdd:
    case OpCode::kSub:
    case OpCode::kMul:
    case OpCode::kDiv:
      return rounded(type, fmt::format("{} {} {}", a[0], ir::text_of(op.code), a[1]));
    case OpCode::kRem:
      return rounded(type, fmt::format("rem({}, {})", a[0], a[1]));
    case OpCode::kFma:
      if (integer) return fmt::format("{} * {} + {}", a[0], a[1], a[2]);
      return rounded(type, fmt::format("fma({}, {}, {})", a[0], a[1], a[2]));
    case OpCode::kNeg:
      return fmt::format("-{}", a[0]);
    case OpCode::kNot:
      return fmt::format("~{}", a[0]);
    case OpCode::kAnd:
    case OpCode::kOr:
    case OpCode::kXor:
      return fmt::format("{} {} {}", a[0], ir::text_of(op.code), a[1]);
    case OpCode::kClamp:
      return clamp(op, type, a);
    default:
      return call(function_name(op), a);
  }
}

}  // namespace

std::string expression(const Kernel& kernel, const Op& op, const Operands& a) {
  const Type& result = kernel.type(op.results[0]);
  if (op.code == OpCode::kConstant) return literal(*op.attributes.find("value"), result);
  const Type& type = kernel.type(op.operands[0]);
  switch (op.code) {
    case OpCode::kHint:
      return a[0];
    case OpCode::kSelect:
      return call("select", a);
    case OpCode::kCast:
      return cast(op, type, result, a[0]);
    case OpCode::kBitcast:
      return bitcast(type, result, a[0]);
    case OpCode::kAddPtr: {
      const Type& offset = kernel.type(op.operands[1]);
      const std::string wide = lane_type(offset) == "int64_t" ? a[1] : fmt::format("convert<int64_t>({})", a[1]);
      return fmt::format("{} + {} * int64_t({})", a[0], wide, size_of(type.element));
    }
    case OpCode::kRounded: {
      const std::string to = fmt::format("rounding::{}", op.attributes.word("to"));
      if (op.attributes.word("function") == "cast") {
        return fmt::format("rounded_cast<{}, {}>({})", to, lane_type(result), a[0]);
      }
      return call(fmt::format("rounded_{}<{}>", op.attributes.word("function"), to), a);
    }
    case OpCode::kIsNan:
      return fmt::format("convert_mask<4>(is_nan({}))", a[0]);
    case OpCode::kIsInf:
      return fmt::format("convert_mask<4>(is_inf({}))", a[0]);
    default:
      if (ir::is_comparison(op.code)) return compare(op, type, a);
      return is_mask(type) ? mask_text(op, a) : arithmetic(op, type, a);
  }
}

}  // namespace heddle::lang::cpu
