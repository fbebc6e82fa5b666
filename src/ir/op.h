#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "heddle/dtype.h"

namespace heddle::ir {

enum class Op : uint8_t {
#define HEDDLE_OP(enumerator, name, op_class) enumerator,
#include "ir/ops.def"
};

// The class of an op determines what passes and the scheduler may assume about it; see docs/design/ir.md.
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

// Cost of an elementwise op by operand type, in units of an addition (a cycle of a vector unit), and its code size,
// where an addition is 2. The costs are the same for every target: functions are the same instruction sequences
// everywhere, and only the order of summed costs decides (what to store, what to compute again).
struct OpCost {
  double f32, f64;
  int64_t code;
  double integer;

  constexpr explicit OpCost(double single = 1, double wide = 1, int64_t size = 2, double of_integers = 1)
      : f32(single), f64(wide), code(size), integer(of_integers) {}
  double cycles(DType dtype) const { return !is_float(dtype) ? integer : dtype == DType::kF64 ? f64 : f32; }
};

std::string_view to_string(Op op);
std::optional<Op> parse_op(std::string_view name);
OpClass class_of(Op op);
OpCost cost_of(Op op);
// True for functions, divisions and random numbers. Avoid computing them again.
bool is_costly(Op op);
// The text of an elementwise op in kernels: "tile::exp", "+". Empty if it depends on types or attributes.
std::string_view text_of(Op op);

inline bool is_elementwise(Op op) {
  return class_of(op) == OpClass::kUnary || class_of(op) == OpClass::kBinary || class_of(op) == OpClass::kTernary;
}
inline bool is_comparison(Op op) {
  return op >= Op::kEq && op <= Op::kGe;
}

// True if the work is proportional to the elements moved and the op has no kernel template. Generated (stitched)
// kernels consist of such ops. Random numbers are memory-bound too but are not a function of their position alone.
inline bool is_memory_bound(Op op) {
  if (is_elementwise(op) || class_of(op) == OpClass::kLayout) return true;
  switch (op) {
    case Op::kIota:
    case Op::kGather:
    case Op::kGatherElements:
    case Op::kGatherNd:
    case Op::kReduce:
    case Op::kArgReduce:
    case Op::kScan:
      return true;
    default:
      return false;
  }
}
// True for memory-bound ops without a function from output positions to input positions. In a region of memory-bound
// ops they have separate kernels, which read and write buffers.
inline bool is_standalone(Op op) {
  return op == Op::kScatterElements || op == Op::kScatterNd || op == Op::kTopK;
}
// True for the ops that contraction templates compute.
inline bool is_anchor(Op op) {
  return class_of(op) == OpClass::kContraction || op == Op::kWindowReduce;
}

}  // namespace heddle::ir
