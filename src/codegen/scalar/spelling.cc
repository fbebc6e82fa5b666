#include "codegen/scalar/spelling.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "heddle/error.h"

namespace heddle::codegen {

using ir::Op;

std::string_view storage_type(DType dtype) {
  switch (dtype) {
    case DType::kF64:
      return "double";
    case DType::kF32:
      return "float";
    case DType::kF16:
      return "tile::half";
    case DType::kBF16:
      return "tile::bfloat";
    case DType::kF8E4M3:
      return "tile::f8e4m3";
    case DType::kF8E4M3Fnuz:
      return "tile::f8e4m3fnuz";
    case DType::kF8E5M2:
      return "tile::f8e5m2";
    case DType::kF8E5M2Fnuz:
      return "tile::f8e5m2fnuz";
    case DType::kF8E8M0:
      return "tile::f8e8m0";
    case DType::kF4E2M1:
      return "tile::f4e2m1";
    case DType::kI64:
      return "int64_t";
    case DType::kI32:
      return "int32_t";
    case DType::kI16:
      return "int16_t";
    case DType::kI8:
    case DType::kI4:
    case DType::kI2:
      return "int8_t";
    case DType::kU64:
      return "uint64_t";
    case DType::kU32:
      return "uint32_t";
    case DType::kU16:
      return "uint16_t";
    default:
      return "uint8_t";
  }
}

std::string literal(DType dtype, double value) {
  const bool wide = dtype == DType::kF64;
  if (std::isnan(value)) return fmt::format("{}(__builtin_nan(\"\"))", storage_type(dtype));
  if (std::isinf(value)) return fmt::format("{}({}__builtin_inf())", storage_type(dtype), value < 0 ? "-" : "");
  std::string digits = wide ? fmt::format("{}", value) : fmt::format("{}", static_cast<float>(value));
  if (digits.find_first_of(".e") == std::string::npos) digits += ".0";
  return digits + (wide ? "" : "f");
}

std::string literal(DType dtype, int64_t value) {
  if (dtype == DType::kU64) return fmt::format("uint64_t({}ull)", static_cast<uint64_t>(value));
  if (dtype != DType::kI64) return fmt::format("{}({})", storage_type(dtype), value);
  return value == INT64_MIN ? "int64_t(-9223372036854775807ll - 1)" : fmt::format("int64_t({}ll)", value);
}

std::string call(std::string_view function, const std::vector<std::string>& operands) {
  return fmt::format("{}({})", function, fmt::join(operands, ", "));
}

std::string applied(Op op, const std::vector<std::string>& operands) {
  const std::string_view text = ir::text_of(op);
  if (text.empty()) fail(ErrorCode::kUnsupportedOperator, std::string(to_string(op)), "kernels cannot compute it");
  if (text.starts_with("tile::")) return call(text, operands);
  return operands.size() == 1 ? fmt::format("{}{}", text, operands[0])
                              : fmt::format("{} {} {}", operands[0], text, operands[1]);
}

std::string applied_to_masks(Op op, const std::vector<std::string>& masks) {
  const auto form = [&](fmt::format_string<const std::string&, const std::string&> text) {
    return fmt::format(text, masks.at(0), masks.at(1));
  };
  switch (op) {
    case Op::kNot:
    case Op::kSelect:
      return applied(op, masks);
    case Op::kAdd:
    case Op::kSub:
    case Op::kXor:
    case Op::kNe:
      return form("{} ^ {}");
    case Op::kMul:
    case Op::kMin:
    case Op::kAnd:
      return form("{} & {}");
    case Op::kMax:
    case Op::kOr:
      return form("{} | {}");
    case Op::kEq:
      return form("~({} ^ {})");
    case Op::kLt:
      return form("~{} & {}");
    case Op::kLe:
      return form("~{} | {}");
    case Op::kGt:
      return form("{} & ~{}");
    case Op::kGe:
      return form("{} | ~{}");
    case Op::kFma:
      return fmt::format("({} & {}) ^ {}", masks.at(0), masks.at(1), masks.at(2));
    default:
      fail(ErrorCode::kUnsupportedOperator, std::string(to_string(op)), "it is not defined on bool");
  }
}

}  // namespace heddle::codegen
