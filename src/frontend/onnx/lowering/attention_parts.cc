#include "frontend/onnx/lowering/attention_parts.h"

#include <array>
#include <cmath>

namespace heddle::onnx {

ValueId grouped_dot(ir::Builder& b, ValueId lhs, ValueId rhs, int64_t rhs_contract) {
  const Shape l = b.shape(lhs), r = b.shape(rhs);
  const int64_t groups = r[1], repeats = l[1] / groups;
  Ints lhs_contract = {3};
  if (repeats > 1) {
    lhs = b.reshape(lhs, {l[0], groups, repeats, l[2], l[3]});
    lhs_contract = {4};
  }
  const ValueId product = b.emit(Op::kDot, {lhs, rhs},
                                 {{"lhs_batch", Ints{0, 1}},
                                  {"rhs_batch", Ints{0, 1}},
                                  {"lhs_contract", lhs_contract},
                                  {"rhs_contract", Ints{rhs_contract}}});
  return b.reshape(product, {l[0], l[1], l[2], r[static_cast<size_t>(5 - rhs_contract)]});
}

ValueId scaled_scores(ir::Builder& b, ValueId q, ValueId k, double scale) {
  if (size_of(b.dtype(q)) >= 4) return b.binary(Op::kMul, grouped_dot(b, q, k, 3), scale);
  const double root = std::sqrt(scale);
  return grouped_dot(b, b.binary(Op::kMul, q, root), b.binary(Op::kMul, k, root), 3);
}

ValueId soft_capped(ir::Builder& b, ValueId scores, double limit) {
  if (limit <= 0) return scores;
  return b.binary(Op::kMul, b.unary(Op::kTanh, b.binary(Op::kDiv, scores, limit)), limit);
}

ValueId with_heads(NodeContext& ctx, ValueId x, int64_t heads) {
  const Shape shape = ctx.b.shape(x);
  if (shape.size() != 3) ctx.invalid(fmt::format("{} must have rank 3", to_string(shape)));
  if (heads < 1 || shape[2] % heads != 0) ctx.invalid(fmt::format("{} heads do not divide {}", heads, shape[2]));
  return ctx.b.reshape(x, {shape[0], shape[1], heads, shape[2] / heads});
}

ValueId without_heads(ir::Builder& b, ValueId x) {
  const Shape shape = b.shape(x);
  return b.reshape(b.transpose(x, {0, 2, 1, 3}), {shape[0], shape[2], shape[1] * shape[3]});
}

ValueId rotate(ir::Builder& b, ValueId x, ValueId cosine, ValueId sine, int64_t rotated, bool interleaved) {
  const Shape s = b.shape(x);
  const int64_t half = rotated / 2;
  const ValueId turned = b.slice_dim(x, 3, 0, rotated);
  ValueId first, second;
  if (interleaved) {
    const ValueId pairs = b.reshape(turned, {s[0], s[1], s[2], half, 2});
    const auto part = [&](int64_t i) { return b.reshape(b.slice_dim(pairs, 4, i, i + 1), {s[0], s[1], s[2], half}); };
    first = part(0);
    second = part(1);
  } else {
    first = b.slice_dim(turned, 3, 0, half);
    second = b.slice_dim(turned, 3, half, rotated);
  }
  std::array parts = {b.sub(b.mul(cosine, first), b.mul(sine, second)),
                      b.add(b.mul(sine, first), b.mul(cosine, second))};
  ValueId y;
  if (interleaved) {
    for (ValueId& part : parts) part = unsqueeze(b, part, {4});
    y = b.reshape(b.concat(parts, 4), {s[0], s[1], s[2], rotated});
  } else {
    y = b.concat(parts, 3);
  }
  if (rotated < s[3]) {
    const std::array whole = {y, b.slice_dim(x, 3, rotated, s[3])};
    y = b.concat(whole, 3);
  }
  return y;
}

}  // namespace heddle::onnx
