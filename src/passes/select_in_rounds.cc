#include "passes/select_in_rounds.h"

#include <optional>

#include "ir/builder.h"
#include "ir/rewrite.h"

namespace heddle::passes {
namespace {

using ir::Attrs;
using ir::Ints;
using ir::Node;
using ir::Op;
using ir::Rewriter;
using ir::ValueId;

constexpr int64_t kMostRounds = 16;

// Numbers of 32 bits in the order of the elements, equal where these are, all above kTaken. Integers, so that however
// often they are computed again, what a round took is taken.
constexpr double kTaken = -2147483648.0;

std::optional<ValueId> order_of(ir::Builder& b, ValueId x, bool largest) {
  const DType type = b.dtype(x);
  ValueId key;
  if (is_float(type) && size_of(type) <= 4) {
    const ValueId wide = b.cast(x, DType::kF32);
    const ValueId bits = b.emit(Op::kBitcast, {wide}, {{"to", DType::kI32}});
    const ValueId magnitude = b.binary(Op::kAnd, bits, 2147483647.0);
    key = b.select(b.binary(Op::kLt, bits, 0.0), b.unary(Op::kNeg, magnitude), magnitude);  // both zeros are 0
    key = b.select(b.unary(Op::kIsNan, wide), b.scalar(DType::kI32, 2139095041.0), key);      // above infinity
  } else if (is_int(type) && bits_of(type) <= 16) {
    key = b.cast(x, DType::kI32);
  } else {
    return std::nullopt;
  }
  return largest ? key : b.unary(Op::kNeg, key);
}

std::optional<std::vector<ValueId>> in_rounds(Rewriter& r, const Node& node) {
  const Shape shape = r.source().shape(node.inputs[0]);
  const int64_t k = node.attrs.integer("k"), dim = node.attrs.integer("dim");
  if (k < 1 || k > kMostRounds || element_count(shape) == 0) return std::nullopt;
  ir::Builder b(r.target());
  b.set_origins(r.origins());
  const ValueId x = r(node.inputs[0]);
  const auto order = order_of(b, x, node.attrs.integer("largest") != 0);
  if (!order) return std::nullopt;
  ValueId left = *order;
  Shape one = shape;
  one[static_cast<size_t>(dim)] = 1;
  std::vector<ValueId> found;
  for (int64_t round = 0; round < k; ++round) {
    const Attrs first{{"kind", "max"}, {"dim", dim}, {"last", int64_t{0}}};
    found.push_back(b.reshape(b.emit(Op::kArgReduce, {left}, first), one));
    if (round + 1 == k) break;
    const ValueId taken = b.binary(Op::kEq, b.iota(DType::kI64, shape, dim), found.back());
    left = b.select(taken, b.scalar(DType::kI32, kTaken), left);
  }
  const ValueId at = b.concat(found, dim);
  return std::vector<ValueId>{b.emit(Op::kGatherElements, {x, at}, {{"dim", dim}}), at};
}

}  // namespace

ir::Graph select_in_rounds(const ir::Graph& graph, const PassContext& context) {
  if (context.target.kind != TargetKind::kCuda) return graph;
  return Rewriter(graph).run([](Rewriter& r, const Node& node) -> std::optional<std::vector<ValueId>> {
    return node.op == Op::kTopK ? in_rounds(r, node) : std::nullopt;
  });
}

}  // namespace heddle::passes
