#include <fmt/format.h>

#include "lang/cuda/emitter.h"
#include "lang/cuda/pipeline.h"
#include "lang/cuda/scalar_text.h"

namespace heddle::lang::cuda {
namespace {

// A tile of a batch has it in its outermost registers.
Layout operand_layout(const Layout& layout, int64_t warps) {
  if (layout.rank() == 2) return layout;
  const std::vector<int64_t> shape(layout.shape.begin() + 1, layout.shape.end());
  return batched(blocked(shape, {1, 0}, shape[1] % 4 == 0 ? 4 : 1, warps), layout.shape[0]);
}

OperandShape operand_shape(const Emitter& e, const Op& op, size_t side, const Layout& layout) {
  const DotPlan& plan = e.assignment.dots.at(&op);
  const int rank = layout.rank(), row = side == 0 ? rank - 2 : rank - 1, depth = side == 0 ? rank - 1 : rank - 2;
  const bool either = plan.element == 2;
  const bool along_k =
      !either || (side == 0 ? layout.run(row) <= layout.run(depth) : layout.run(row) < layout.run(depth));
  const int64_t rows = layout.shape[static_cast<size_t>(row)];
  return {rows, layout.shape[static_cast<size_t>(depth)], along_k, covered_rows(plan, rows, side == 1)};
}

std::string operand_element(const Emitter& e, const Op& op) {
  const DotPlan& plan = e.assignment.dots.at(&op);
  return fmt::format("{}::In", plan.by);
  (void)e;
}

// Whether warps hold the first operand as sums of another product, which is how they read fragments.
bool is_held(const Emitter& e, const Op& op) {
  const DotPlan& plan = e.assignment.dots.at(&op);
  const ValueId v = op.operands[0];
  const Type& type = e.type(v);
  const bool same = (type.element == Element::kF16 && plan.by == "block::by_f16") ||
                    (type.element == Element::kBF16 && plan.by == "block::by_bf16");
  return same && type.rank() == 2 && plan.grid.n == 1 && !e.uniform(v) && type.shape[0] % 16 == 0 &&
         e.layout(v).type == mma(type.shape, {plan.grid.m, 1}, e.warps).type;
}

// Operands that lie in shared memory or registers already; the other one is laid down for this product.
std::string from_where_it_is(Emitter& e, const Op& op) {
  const DotPlan& plan = e.assignment.dots.at(&op);
  const std::string layout = e.layout_name(plan.layout);
  std::string sources[2];
  for (const size_t side : {size_t{0}, size_t{1}}) {
    const ValueId v = op.operands[side];
    if (side == 0 && e.operands.count(v) == 0 && is_held(e, op)) {
      sources[0] = fmt::format("block::HeldOperand<{}, {}>{{{}}}", element_type(e.type(v).element),
                               e.layout_name(e.layout(v)), e.text(v));
      continue;
    }
    OperandText text;
    if (const auto found = e.operands.find(v); found != e.operands.end()) {
      text = found->second;
    } else {
      const std::string name = e.fresh("laid");
      text = operand_text(e, op, side, name);
      e.need_shared(operand_size(e, op, side));
      e.out.raw(fmt::format("auto* const {} = kShared.begin<{}>();", name, operand_element(e, op)));
      e.out.raw(fmt::format("block::put<{}, {}, {}>({}, {});", text.operand, plan.by, side, name, e.tile(v)));
      e.out.raw("__syncthreads();");
    }
    sources[side] = fmt::format("block::SharedOperand<{}, {}, {}>({}, block::warp_start<{}, {}>())", text.operand,
                                side == 1, text.copied, text.pointer, layout, side);
  }
  return fmt::format("block::multiply<{}>({}, {}, {})", plan.sums, sources[0], sources[1],
                     e.tile(op.operands[2], plan.layout));
}

}  // namespace

OperandText operand_text(const Emitter& e, const Op& dot, size_t side, std::string pointer) {
  const OperandShape shape = operand_shape(e, dot, side, e.layout(dot.operands[side]));
  return {operand_type(shape, operand_element(e, dot)), std::move(pointer), false};
}

int64_t operand_size(const Emitter& e, const Op& dot, size_t side) {
  return operand_bytes(operand_shape(e, dot, side, e.layout(dot.operands[side])), e.assignment.dots.at(&dot).element);
}

bool emit_product(Emitter& e, const Op& op) {
  if (op.code != OpCode::kDot) return false;
  const DotPlan& plan = e.assignment.dots.at(&op);
  std::string text;
  const bool in_place = !plan.by_thread && plan.pieces == 1 && e.type(op.operands[0]).rank() == 2;
  const bool a_there = e.operands.count(op.operands[0]) != 0, b_there = e.operands.count(op.operands[1]) != 0;
  if (in_place && (a_there || b_there || is_held(e, op))) {
    text = from_where_it_is(e, op);
  } else {
    const Layout a = operand_layout(e.layout(op.operands[0]), e.warps);
    const Layout b = operand_layout(e.layout(op.operands[1]), e.warps);
    e.need_shared(plan.pieces * (operand_bytes(operand_shape(e, op, 0, a), plan.element) +
                                 operand_bytes(operand_shape(e, op, 1, b), plan.element)));
    text = fmt::format("block::dot<{}, {}>(kShared, {}, {}, {})", plan.by, plan.sums, e.tile(op.operands[0], a),
                       e.tile(op.operands[1], b), e.tile(op.operands[2], plan.layout));
  }
  e.declare(op, op.results[0], e.converted(text, plan.layout, e.layout(op.results[0]), e.type(op.results[0])));
  return true;
}

}  // namespace heddle::lang::cuda
