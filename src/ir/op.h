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

// What an elementwise op costs by the type of its operands, where an addition is 1 (a cycle of a vector unit), and the
// size of its code, where an addition is 2. No figure of a device: functions are sequences of instructions that every
// target has alike, and only the order of such sums decides (what to store, what to compute again).
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
// Functions, divisions and random numbers: not to be computed again where that is to be avoided.
bool is_costly(Op op);
// What kernels write for an elementwise op: "tile::exp", "+". Empty where that depends on types or attributes.
std::string_view text_of(Op op);

inline bool is_elementwise(Op op) {
  return class_of(op) == OpClass::kUnary || class_of(op) == OpClass::kBinary || class_of(op) == OpClass::kTernary;
}
inline bool is_comparison(Op op) {
  return op >= Op::kEq && op <= Op::kGe;
}

// Work proportional to the elements moved, with no template of its own: what generated (stitched) kernels are made of.
// Random numbers are memory-bound too but no function of their position alone.
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
// Memory-bound without a function from positions of the outputs to positions of the inputs: in a region of memory-bound
// ops they have kernels of their own, which read and write buffers.
inline bool is_standalone(Op op) {
  return op == Op::kScatterElements || op == Op::kScatterNd || op == Op::kTopK;
}
// The ops that contraction templates compute.
inline bool is_anchor(Op op) {
  return class_of(op) == OpClass::kContraction || op == Op::kWindowReduce;
}

}  // namespace heddle::ir
