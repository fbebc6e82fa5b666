#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "heddle/dtype.h"

namespace heddle::ir {

// The operations of graphs and of the tile language's IR (lang/ir).
enum class Op : uint8_t {
#define HEDDLE_OP(enumerator, name, op_class) enumerator,
#include "ir/ops.def"
};

// The class of a graph op. Determines what passes and the scheduler may assume about the op; see docs/design/ir.md.
enum class OpClass : uint8_t {
  kUnary,
  kBinary,
  kTernary,
  kSource,
  kLayout,
  kIndexing,
  kPacked,
  kReduction,
  kWindow,
  kContraction,
  kControl,
  kCall,
  kTileIr,  // only in the tile IR
};

enum OpUsers : uint8_t { kGraph = 1, kTile = 2, kBoth = 3 };

// The operand types that an elementwise op accepts.
enum OpTypes : uint8_t {
  kBooleans = 1,
  kInts = 2,
  kFloats = 4,
  kMath = 8,       // floats; in the tile IR only f32 and f64
  kPointers = 16,  // only in the tile IR
  kBits = 32,      // only in the tile IR: booleans used as integers modulo 2
  kAny = kBooleans | kInts | kFloats | kPointers,
};

// The accuracy of an elementwise op's floating-point result in a kernel.
enum class Accuracy : uint8_t {
  kExact,
  kRounded,      // correctly rounded once
  kApproximate,  // within a few units in the last place
};

// The cost of an elementwise op by operand type, in units of one addition (one cycle of a vector unit). `code` is the
// code size; an addition has size 2. Costs are the same for every target: functions have the same instruction sequence
// on each, and only the order of summed costs matters when choosing whether to store a value or to compute it again.
struct OpCost {
  double f32, f64;
  int64_t code;
  double integer;

  constexpr explicit OpCost(double single = 1, double wide = 1, int64_t size = 2, double of_integers = 1)
      : f32(single), f64(wide), code(size), integer(of_integers) {}
  double cycles(DType dtype) const { return !is_float(dtype) ? integer : dtype == DType::kF64 ? f64 : f32; }
};

std::string_view to_string(Op op);
std::optional<Op> parse_op(std::string_view name);  // graph ops only
std::span<const Op> elementwise_ops();              // of graphs
OpClass class_of(Op op);
OpCost cost_of(Op op);
unsigned types_of(Op op);
Accuracy accuracy_of(Op op);
// The C++ text of an elementwise op in kernels, such as "tile::exp" or "+". Empty if the text depends on types or
// attributes.
std::string_view text_of(Op op);

inline bool is_elementwise(Op op) {
  return class_of(op) == OpClass::kUnary || class_of(op) == OpClass::kBinary || class_of(op) == OpClass::kTernary;
}
inline bool is_comparison(Op op) {
  return op >= Op::kEq && op <= Op::kGe;
}
// True for functions, divisions and random numbers, which are too costly to compute twice.
inline bool is_costly(Op op) {
  return op == Op::kRandom || (is_elementwise(op) && cost_of(op).f32 > 1);
}

// True if the op's work is proportional to the elements moved and no kernel template computes it. Generated (stitched)
// kernels consist of such ops. Random numbers are excluded: they are memory-bound but not a function of position alone.
inline bool is_memory_bound(Op op) {
  if (is_elementwise(op) || class_of(op) == OpClass::kLayout) return true;
  switch (op) {
    case Op::kIota:
    case Op::kGather:
    case Op::kGatherElements:
    case Op::kGatherNd:
    case Op::kDequantize:
    case Op::kReduce:
    case Op::kArgReduce:
    case Op::kScan:
      return true;
    default:
      return false;
  }
}
// True for memory-bound ops whose input positions are not a function of the output position. A standalone op is not
// fused with the other ops of its region: it has a separate kernel, which reads and writes buffers.
inline bool is_standalone(Op op) {
  return op == Op::kScatterElements || op == Op::kScatterNd || op == Op::kTopK;
}
// True for the ops that contraction templates compute.
inline bool is_anchor(Op op) {
  return class_of(op) == OpClass::kContraction || op == Op::kWindowReduce;
}

}  // namespace heddle::ir
