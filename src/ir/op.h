#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace heddle::ir {

enum class Op : uint8_t {
#define HEDDLE_OP(enumerator, name, op_class) enumerator,
#include "ir/ops.def"
#undef HEDDLE_OP
};

// What passes and the scheduler may assume of an op; see docs/design/ir.md.
enum class OpClass : uint8_t {
  kUnary,
  kBinary,
  kTernary,
  kSource,
  kLayout,
  kIndexing,
  kReduction,
  kWindow,
  kContraction,
  kControl,
  kCall,
};

std::string_view to_string(Op op);
std::optional<Op> parse_op(std::string_view name);
OpClass class_of(Op op);

inline bool is_elementwise(Op op) {
  return class_of(op) == OpClass::kUnary || class_of(op) == OpClass::kBinary || class_of(op) == OpClass::kTernary;
}
inline bool is_comparison(Op op) {
  return op >= Op::kEq && op <= Op::kGe;
}

}  // namespace heddle::ir
