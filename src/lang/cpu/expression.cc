#include "lang/cpu/expression.h"

#include <fmt/format.h>

#include "codegen/scalar/spelling.h"
#include "lang/cpu/types.h"

namespace heddle::lang::cpu {
namespace {

using codegen::call;
using Operands = std::vector<std::string>;

std::string rounded(const Type& type, const std::string& text) {
  return is_rounded(type) ? fmt::format("round_storage<{}, true>({})", memory_type(type.element), text) : text;
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

}  // namespace

std::string expression(const Kernel& kernel, const Op& op, const Operands& a) {
  const Type& result = kernel.type(op.results[0]);
  if (op.code == OpCode::kConstant) return literal(*op.attributes.find("value"), result);
  const Type& type = kernel.type(op.operands[0]);
  const auto counted = [&](const std::string& mask, int64_t size) {
    return size == 4 ? mask : fmt::format("convert_mask<4>({})", mask);
  };
  switch (op.code) {
    case OpCode::kHint:
      return a[0];
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
      return counted(codegen::applied(op.code, a), buffer_size(type));
    case OpCode::kIsInf:
      return counted(call("is_inf", a), buffer_size(type));
    case OpCode::kClamp:
      return clamp(op, type, a);
    default:
      break;
  }
  if (is_mask(type)) return codegen::applied_to_masks(op.code, a);
  if ((op.code == OpCode::kMin || op.code == OpCode::kMax) && op.attributes.word("nan") != "propagate") {
    return call(fmt::format("{}_number", ir::text_of(op.code)), a);
  }
  if (op.code == OpCode::kFma && !is_float(type.element)) return fmt::format("{} * {} + {}", a[0], a[1], a[2]);
  const std::string text = codegen::applied(op.code, a);
  if (ir::is_comparison(op.code)) return counted(text, buffer_size(type));
  return ir::accuracy_of(op.code) == ir::Accuracy::kRounded ? rounded(type, text) : text;
}

}  // namespace heddle::lang::cpu
