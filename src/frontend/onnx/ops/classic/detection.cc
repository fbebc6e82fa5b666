#include <algorithm>
#include <array>
#include <limits>

#include "frontend/onnx/node_context.h"
#include "frontend/onnx/op_registry.h"

namespace heddle::onnx {
namespace {

using ir::Op;
using ir::ValueId;

// How many boxes survive is data, so the operator works where its inputs are known.
void lower_non_max_suppression(NodeContext& ctx) {
  ir::Builder& b = ctx.b;
  if (ctx.rank(0) != 3 || ctx.rank(1) != 3) ctx.invalid("boxes and scores must have rank 3");
  const Shape scores = ctx.shape(1);
  const int64_t most = ctx.has(2) ? std::max<int64_t>(0, ctx.constant_int(2)) : 0;
  const int64_t per_class = std::min(most, scores[2]);
  const double unbounded = -std::numeric_limits<double>::infinity();
  const auto results = b.emit_all(Op::kCall, {ctx.in(0), ctx.in(1)},
                                  {{"target", "non_max_suppression"},
                                   {"limit", element_count({scores[0], scores[1], per_class})},
                                   {"max_per_class", per_class},
                                   {"center", int64_t{ctx.attr_int("center_point_box", 0) != 0}},
                                   {"iou_threshold", ctx.has(3) ? ctx.constant_real(3) : 0.0},
                                   {"score_threshold", ctx.has(4) ? ctx.constant_real(4) : unbounded}});
  const int64_t count = ctx.constant_of(results[1]).values<int64_t>()[0];
  ctx.set(0, b.slice_dim(results[0], 0, 0, count));
}

}  // namespace

std::span<const OpHandler> detection_ops() {
  static constexpr std::array kHandlers = {
      OpHandler{"", "NonMaxSuppression", 10, kNewestOpset, lower_non_max_suppression},
  };
  return kHandlers;
}

}  // namespace heddle::onnx
