#include "lang/cuda/scalar_text.h"

#include <fmt/format.h>

#include <cmath>

#include "heddle/error.h"

namespace heddle::lang::cuda {
namespace {

bool is_native_float(Element e) {
  return e == Element::kF32 || e == Element::kF64;
}

std::string float_literal(double value, Element element) {
  const bool is_double = element == Element::kF64;
  if (std::isnan(value)) return is_double ? "__builtin_nan(\"\")" : "__builtin_nanf(\"\")";
  if (std::isinf(value)) {
    return std::string(value < 0 ? "-" : "") + (is_double ? "__builtin_inf()" : "__builtin_inff()");
  }
  const std::string text = is_double ? fmt::format("{}", value) : fmt::format("{}", static_cast<float>(value));
  const bool has_point = text.find_first_of(".e") != std::string::npos;
  return text + (has_point ? "" : ".0") + (is_double ? "" : "f");
}

std::string integer_literal(const Attribute& value, Element element) {
  const std::string type = element_type(element);
  if (is_unsigned_int(element)) {
    return fmt::format("{}({}u{})", type, static_cast<uint64_t>(value.integer), element == Element::kU64 ? "ll" : "");
  }
  // The least number has no literal of its own.
  if (value.integer == INT64_MIN) return "(-9223372036854775807ll - 1)";
  if (element == Element::kI32 && value.integer != INT32_MIN) return std::to_string(value.integer);
  return fmt::format("{}({}ll)", type, value.integer);
}

std::string call(std::string_view name, const std::vector<std::string>& operands) {
  return fmt::format("{}({})", name, fmt::join(operands, ", "));
}

std::string comparison(OpCode code, const Type& type, const std::vector<std::string>& x) {
  const std::string_view sign = ir::text_of(code);
  if (type.pointer || !is_float(type.element) || is_native_float(type.element)) {
    return fmt::format("{} {} {}", x[0], sign, x[1]);
  }
  return fmt::format("block::widen({}) {} block::widen({})", x[0], sign, x[1]);
}

// Arithmetic where C++ has an operator that means the same.
std::string arithmetic(char sign, const char* function, Element e, const std::vector<std::string>& x) {
  if (is_native_float(e) || e == Element::kU32 || e == Element::kU64) return fmt::format("{} {} {}", x[0], sign, x[1]);
  return call(function, x);
}

std::string bitwise(char sign, const char* logical, Element e, const std::vector<std::string>& x) {
  if (e == Element::kI1) return fmt::format("{} {} {}", x[0], logical, x[1]);
  if (bits_of(e) >= 32) return fmt::format("{} {} {}", x[0], sign, x[1]);
  return fmt::format("{}({} {} {})", element_type(e), x[0], sign, x[1]);
}

// "__fadd_rd", "__ull2float_rz"
std::string rounded_name(const Op& op, Element from, Element to) {
  const std::string_view function = op.attributes.word("function"), word = op.attributes.word("to");
  const char* const suffix = word == "rtne" ? "rn" : word == "rtn" ? "rd" : word == "rtp" ? "ru" : "rz";
  const bool single = to == Element::kF32;
  if (function == "fma") return fmt::format("__fma{}_{}", single ? "f" : "", suffix);
  if (function != "cast") return fmt::format("__{}{}_{}", single ? "f" : "d", function, suffix);
  const char* const source = is_float(from)          ? "double"
                             : from == Element::kI32 ? "int"
                             : from == Element::kU32 ? "uint"
                             : from == Element::kI64 ? "ll"
                                                     : "ull";
  // Doubles have all integers of 32 bits, and no function that rounds them.
  if (!single && bits_of(from) == 32) return fmt::format("__{}2double_rn", source);
  return fmt::format("__{}2{}_{}", source, single ? "float" : "double", suffix);
}

// CUDA's own functions of float and double.
std::string math(const Op& op, Element e, const std::vector<std::string>& x) {
  const bool single = e == Element::kF32;
  if (op.code == OpCode::kExp) return call("block::exp_fast", x);
  if (op.code == OpCode::kExp2 && single) return call("tile::cuda::exp2_approx", x);
  if (op.code == OpCode::kIsNan) return fmt::format("{0} != {0}", x[0]);
  if (op.code == OpCode::kIsInf) return fmt::format("block::abs({}) == {}", x[0], float_literal(INFINITY, e));
  // The C library's round() is that away from zero.
  const std::string_view function = op.code == OpCode::kRound       ? "rint"
                                    : op.code == OpCode::kRoundAway ? "round"
                                                                    : to_string(op.code);
  const std::string name = fmt::format("::{}{}", function, single ? "f" : "");
  if (op.code == OpCode::kJn || op.code == OpCode::kYn) return call(name, {x[1], x[0]});
  return call(name, x);
}

}  // namespace

std::string element_type(Element element) {
  switch (element) {
    case Element::kI1:
      return "bool";
    case Element::kI8:
      return "int8_t";
    case Element::kI16:
      return "int16_t";
    case Element::kI32:
      return "int32_t";
    case Element::kI64:
      return "int64_t";
    case Element::kU8:
      return "uint8_t";
    case Element::kU16:
      return "uint16_t";
    case Element::kU32:
      return "uint32_t";
    case Element::kU64:
      return "uint64_t";
    case Element::kF16:
      return "tile::half";
    case Element::kBF16:
      return "tile::bfloat";
    case Element::kF32:
      return "float";
    case Element::kF64:
      return "double";
    case Element::kF8E4M3:
      return "tile::f8e4m3";
    case Element::kF8E5M2:
      return "tile::f8e5m2";
    case Element::kF8E4M3B8:
      return "tile::f8e4m3fnuz";
    case Element::kF8E4M3B15:
      return "block::f8e4m3b15";
    case Element::kF8E5M2B16:
      return "tile::f8e5m2fnuz";
  }
  return {};
}

std::string scalar_type(const Type& type) {
  return element_type(type.element) + (type.pointer ? "*" : "");
}

std::string literal(const Attribute& value, const Type& type) {
  if (type.pointer) return fmt::format("static_cast<{}>(nullptr)", scalar_type(type));
  if (type.element == Element::kI1) return value.integer != 0 ? "true" : "false";
  if (!is_float(type.element)) return integer_literal(value, type.element);
  if (is_native_float(type.element)) return float_literal(value.number, type.element);
  return fmt::format("block::cast<{}>({})", element_type(type.element), float_literal(value.number, Element::kF64));
}

std::string expression(const Kernel& kernel, const Op& op, const std::vector<std::string>& x) {
  const Type& type = kernel.type(op.operands[0]);
  const Type& result = kernel.type(op.results[0]);
  const Element e = type.element;
  const bool wins = op.attributes.word("nan") == "propagate";
  switch (op.code) {
    case OpCode::kAdd:
      return arithmetic('+', "block::add", e, x);
    case OpCode::kSub:
      return arithmetic('-', "block::sub", e, x);
    case OpCode::kMul:
      return arithmetic('*', "block::mul", e, x);
    case OpCode::kDiv:
      if (!is_float(e)) return call("block::idiv", x);
      return call(op.attributes.integer("ieee") != 0 ? "block::div" : "block::div_fast", x);
    case OpCode::kRem:
      return call("block::rem", x);
    case OpCode::kFma:
      return call("block::fma", x);
    case OpCode::kNeg:
      return call("block::neg", x);
    case OpCode::kAbs:
      return call("block::abs", x);
    case OpCode::kNot:
      return call("block::invert", x);
    case OpCode::kMin:
      return call(wins ? "block::min_or_nan" : "block::min", x);
    case OpCode::kMax:
      return call(wins ? "block::max_or_nan" : "block::max", x);
    case OpCode::kClamp:
      return call(wins ? "block::clamp_or_nan" : "block::clamp", x);
    case OpCode::kAnd:
      return bitwise('&', "&&", e, x);
    case OpCode::kOr:
      return bitwise('|', "||", e, x);
    case OpCode::kXor:
      return bitwise('^', "!=", e, x);
    case OpCode::kShl:
      return call("block::shl", x);
    case OpCode::kShr:
      return call("block::shr", x);
    case OpCode::kMulHi:
      return call("block::mulhi", x);
    case OpCode::kSelect:
      return fmt::format("{} ? {} : {}", x[0], x[1], x[2]);
    case OpCode::kCast: {
      const bool cut = op.attributes.word("rounding") == "rtz";
      return fmt::format("block::{}<{}>({})", cut ? "cast_rtz" : "cast", element_type(result.element), x[0]);
    }
    case OpCode::kBitcast:
      return fmt::format("block::bitcast<{}>({})", scalar_type(result), x[0]);
    case OpCode::kAddPtr:
      return fmt::format("{} + {}", x[0], x[1]);
    case OpCode::kHint:
      return x[0];
    case OpCode::kRounded:
      return call(rounded_name(op, e, result.element), x);
    case OpCode::kClz:
    case OpCode::kPopc:
    case OpCode::kFfs:
      return fmt::format("int32_t(block::{}({}))", to_string(op.code), x[0]);
    case OpCode::kBrev:
      return call("block::brev", x);
    default:
      return ir::is_comparison(op.code) ? comparison(op.code, type, x) : math(op, e, x);
  }
}

}  // namespace heddle::lang::cuda
