#include "lang/cuda/scalar_text.h"

#include <fmt/format.h>

#include <limits>

#include "codegen/scalar/spelling.h"

namespace heddle::lang::cuda {
namespace {

using codegen::call;
using Operands = std::vector<std::string>;

bool is_native_float(Element e) {
  return e == Element::kF32 || e == Element::kF64;
}

std::string bitwise(OpCode code, Element e, const Operands& x) {
  const std::string text = codegen::applied(code, x);
  if (e == Element::kI1) {
    const char* const sign = code == OpCode::kAnd ? "&&" : code == OpCode::kOr ? "||" : "!=";
    return fmt::format("{} {} {}", x[0], sign, x[1]);
  }
  return bits_of(e) >= 32 ? text : fmt::format("{}({})", element_type(e), text);
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

// The operators where C++ means the same by them, CUDA's own functions of float and double, and those of the library.
std::string plain(OpCode code, const Type& type, const Operands& x) {
  const Element e = type.element;
  const bool native = is_native_float(e), is_operator = !ir::text_of(code).starts_with("tile::");
  if (ir::is_comparison(code)) {
    if (type.pointer || !is_float(e) || native) return codegen::applied(code, x);
    return codegen::applied(code, {call("block::widen", {x[0]}), call("block::widen", {x[1]})});
  }
  if (is_operator && x.size() == 2 && (native || e == Element::kU32 || e == Element::kU64)) {
    return codegen::applied(code, x);
  }
  const bool has_library_name = (ir::types_of(code) & ir::kMath) != 0 || code == OpCode::kPow;
  if (!has_library_name) return call(fmt::format("block::{}", to_string(code)), x);
  // The C library's round() is that away from zero.
  const std::string_view name = code == OpCode::kRound       ? "rint"
                                : code == OpCode::kRoundAway ? "round"
                                                             : to_string(code);
  return call(fmt::format("::{}{}", name, e == Element::kF32 ? "f" : ""), x);
}

}  // namespace

std::string element_type(Element element) {
  if (element == Element::kI1) return "bool";
  if (element == Element::kF8E4M3B15) return "block::f8e4m3b15";
  return std::string(codegen::storage_type(dtype_of(element)));
}

std::string scalar_type(const Type& type) {
  return element_type(type.element) + (type.pointer ? "*" : "");
}

std::string literal(const Attribute& value, const Type& type) {
  if (type.pointer) return fmt::format("static_cast<{}>(nullptr)", scalar_type(type));
  if (type.element == Element::kI1) return value.integer != 0 ? "true" : "false";
  if (!is_float(type.element)) return codegen::literal(dtype_of(type.element), value.integer);
  if (is_native_float(type.element)) return codegen::literal(dtype_of(type.element), value.number);
  return fmt::format("block::cast<{}>({})", element_type(type.element), codegen::literal(DType::kF64, value.number));
}

std::string expression(const Kernel& kernel, const Op& op, const Operands& x) {
  const Type& type = kernel.type(op.operands[0]);
  const Type& result = kernel.type(op.results[0]);
  const Element e = type.element;
  switch (op.code) {
    case OpCode::kDiv:
      return call(!is_float(e)                         ? "block::idiv"
                  : op.attributes.integer("ieee") != 0 ? "block::div"
                                                       : "block::div_fast",
                  x);
    case OpCode::kNot:
      return call("block::invert", x);
    case OpCode::kMin:
    case OpCode::kMax:
    case OpCode::kClamp:
      return call(
          fmt::format("block::{}{}", to_string(op.code), op.attributes.word("nan") == "propagate" ? "_or_nan" : ""), x);
    case OpCode::kAnd:
    case OpCode::kOr:
    case OpCode::kXor:
      return bitwise(op.code, e, x);
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
      return call("int32_t", {plain(op.code, type, x)});
    case OpCode::kExp:
      return call("block::exp_fast", x);
    case OpCode::kExp2:
      return e == Element::kF32 ? call("tile::cuda::exp2_approx", x) : plain(op.code, type, x);
    case OpCode::kIsNan:
      return fmt::format("{0} != {0}", x[0]);
    case OpCode::kIsInf:
      return fmt::format("block::abs({}) == {}", x[0],
                         codegen::literal(dtype_of(e), std::numeric_limits<double>::infinity()));
    case OpCode::kJn:
    case OpCode::kYn:
      return plain(op.code, type, {x[1], x[0]});
    default:
      return plain(op.code, type, x);
  }
}

}  // namespace heddle::lang::cuda
