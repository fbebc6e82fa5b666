#include <array>

#include "frontend/onnx/node_context.h"
#include "frontend/onnx/op_registry.h"

namespace heddle::onnx {
namespace {

using ir::Builder;
using ir::Ints;
using ir::Op;
using ir::ValueId;

struct Loss {
  std::string reduction;
  ValueId log_probability = 0;  // [N, C, d...]
  ValueId target = 0;           // [N, d...]
  std::optional<ValueId> weight;
};

// The class dimension is picked by the target; ignored targets weigh nothing. With reduction "mean" the sum is divided
// by the sum of the weights that took part.
ValueId negative_log_likelihood(NodeContext& ctx, const Loss& loss) {
  Builder& b = ctx.b;
  const DType dtype = b.dtype(loss.log_probability);
  const Shape shape = b.shape(loss.target);
  Shape column = b.shape(loss.log_probability);
  Shape expected = column;
  if (expected.size() < 2) ctx.invalid("the scores need a batch and a class dimension");
  expected.erase(expected.begin() + 1);
  if (expected != shape) {
    ctx.invalid(fmt::format("the target is {}, {} expected", to_string(shape), to_string(expected)));
  }
  column[1] = 1;
  ValueId target = loss.target;
  std::optional<ValueId> used;
  if (ctx.has_attr("ignore_index")) {
    const ValueId ignored = b.full(b.dtype(target), shape, static_cast<double>(ctx.attr_int("ignore_index")));
    used = b.binary(Op::kNe, target, ignored);
    target = b.select(*used, target, b.full(b.dtype(target), shape, 0));
  }
  const ValueId picked =
      b.emit(Op::kGatherElements, {loss.log_probability, b.reshape(target, column)}, {{"dim", int64_t{1}}});
  ValueId value = b.unary(Op::kNeg, b.reshape(picked, shape));
  std::optional<ValueId> weight;
  if (loss.weight) weight = b.gather(*loss.weight, target, 0);
  if (used) weight = b.select(*used, weight ? *weight : b.full(dtype, shape, 1), b.full(dtype, shape, 0));
  if (weight)
    value =
        b.select(b.binary(Op::kEq, *weight, b.full(dtype, shape, 0)), b.full(dtype, shape, 0), b.mul(value, *weight));
  if (loss.reduction == "none") return value;
  Ints all;
  for (size_t d = 0; d < shape.size(); ++d) all.push_back(static_cast<int64_t>(d));
  if (loss.reduction == "sum") return b.reduce("sum", value, all);
  if (loss.reduction != "mean") ctx.invalid("reduction \"" + loss.reduction + "\" is none of none, sum, mean");
  if (!weight) return b.mean(value, all);
  return b.div(b.reduce("sum", value, all), b.reduce("sum", *weight, all));
}

Loss read_loss(const NodeContext& ctx) {
  Loss loss;
  loss.reduction = ctx.attr_string("reduction", "mean");
  loss.log_probability = ctx.in(0);
  loss.target = ctx.in(1);
  if (ctx.has(2)) loss.weight = ctx.in(2);
  return loss;
}

void lower_nll(NodeContext& ctx) {
  ctx.set(0, negative_log_likelihood(ctx, read_loss(ctx)));
}

void lower_softmax_cross_entropy(NodeContext& ctx) {
  Builder& b = ctx.b;
  Loss loss = read_loss(ctx);
  const ValueId x = loss.log_probability;
  if (b.rank(x) < 2) ctx.invalid("the scores need a batch and a class dimension");
  const ValueId shifted = b.sub(x, b.reduce("max", x, {1}, true));
  const ValueId total = b.unary(Op::kLog, b.reduce("sum", b.unary(Op::kExp, shifted), {1}, true));
  loss.log_probability = b.sub(shifted, total);
  ctx.set(0, negative_log_likelihood(ctx, loss));
  if (ctx.wants(1)) ctx.set(1, loss.log_probability);
}

}  // namespace

std::span<const OpHandler> loss_ops() {
  static constexpr std::array kHandlers = {
      OpHandler{"", "NegativeLogLikelihoodLoss", 12, kNewestOpset, lower_nll},
      OpHandler{"", "SoftmaxCrossEntropyLoss", 12, kNewestOpset, lower_softmax_cross_entropy},
  };
  return kHandlers;
}

}  // namespace heddle::onnx
