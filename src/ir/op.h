#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "heddle/dtype.h"

namespace heddle::ir {

// The operations of graphs, and of the IR of the tile language (lang/ir).
enum class Op : uint8_t {
#define HEDDLE_OP(enumerator, name, op_class) enumerator,
#include "ir/ops.def"
};

// The class of an op of graphs determines what passes and the scheduler may assume about it; see docs/design/ir.md.
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
  kTileIr,  // of no graph
};

enum OpUsers : uint8_t { kGraph = 1, kTile = 2, kBoth = 3 };

// The operands that an elementwise op takes.
enum OpTypes : uint8_t {
  kBooleans = 1,
  kInts = 2,
  kFloats = 4,
  kMath = 8,       // floats; in the tile IR only f32 and f64
  kPointers = 16,  // of the tile IR, as kBits: booleans as numbers modulo 2
  kBits = 32,
  kAny = kBooleans | kInts | kFloats | kPointers,
};

// How far the floating-point result of an elementwise op in a kernel is from the exact one.
enum class Accuracy : uint8_t {
  kExact,
  kRounded,      // once
  kApproximate,  // within a few units in the last place
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
std::optional<Op> parse_op(std::string_view name);  // an op of graphs
OpClass class_of(Op op);
OpCost cost_of(Op op);
unsigned types_of(Op op);
Accuracy accuracy_of(Op op);
// The text of an elementwise op in kernels: "tile::exp", "+". Empty if it depends on types or attributes.
std::string_view text_of(Op op);

inline bool is_elementwise(Op op) {
  return class_of(op) == OpClass::kUnary || class_of(op) == OpClass::kBinary || class_of(op) == OpClass::kTernary;
}
inline bool is_comparison(Op op) {
  return op >= Op::kEq && op <= Op::kGe;
}
// True for functions, divisions and random numbers. Avoid computing them again.
inline bool is_costly(Op op) {
  return op == Op::kRandom || (is_elementwise(op) && cost_of(op).f32 > 1);
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
