#include <fmt/format.h>

#include <utility>

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
  return {rows, layout.shape[static_cast<size_t>(depth)], along_k, covered_rows(plan, rows, side == 1), plan.by_group};
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
  if (e.uniform(v) || type.rank() != 2 || plan.swapped) return false;
  if (plan.by_group) return e.layout(v).type == warpgroup_type(type.shape, e.warps) + "::type";
  const bool same = (type.element == Element::kF16 && plan.by == "block::by_f16") ||
                    (type.element == Element::kBF16 && plan.by == "block::by_bf16");
  return same && type.rank() == 2 && plan.grid.n == 1 && !e.uniform(v) && type.shape[0] % 16 == 0 &&
         e.layout(v).type == mma(type.shape, {plan.grid.m, 1}, e.warps).type;
}

// An operand of this product, laid down in shared memory `at` bytes behind its beginning unless it is there.
OperandText in_shared(Emitter& e, const Op& op, size_t side, int64_t& at) {
  const ValueId v = op.operands[side];
  if (const auto found = e.operands.find(v); found != e.operands.end()) return found->second;
  const DotPlan& plan = e.assignment.dots.at(&op);
  const std::string name = e.fresh("laid");
  const OperandText text = operand_text(e, op, side, name);
  if (at == 0) e.out.raw("block::sync();");
  e.out.raw(e.placed(fmt::format("auto* const {} = kShared.slot<{}, kShared.offset + {}>();", name, text.operand, at)));
  e.out.raw(e.placed(put_text(e, op, side, text)));
  at += aligned_slot(operand_size(e, op, side));
  (void)plan;
  return text;
}

// Operands that lie in shared memory or registers already; others are laid down for this product.
std::string from_where_it_is(Emitter& e, const Op& op) {
  const DotPlan& plan = e.assignment.dots.at(&op);
  const std::string layout = e.layout_name(plan.layout);
  int64_t laid = 0;
  std::string sources[2];
  for (const size_t side : {size_t{0}, size_t{1}}) {
    const ValueId v = op.operands[side];
    if (side == 0 && e.operands.count(v) == 0 && is_held(e, op)) {
      sources[0] = fmt::format("block::{}<{}, {}>{{{}}}", plan.by_group ? "HeldSource" : "HeldOperand",
                               element_type(e.type(v).element), e.layout_name(e.layout(v)), e.text(v));
      continue;
    }
    const OperandText text = in_shared(e, op, side, laid);
    sources[side] = plan.by_group ? fmt::format("block::SwizzledSource<{}>{{{}}}", text.operand, text.pointer)
                                  : fmt::format("block::SharedOperand<{}, {}, {}>({}, block::warp_start<{}, {}>())",
                                                text.operand, side == 1, text.copied, text.pointer, layout, side);
  }
  if (laid > 0) {
    e.need_shared(laid);
    e.out.raw(plan.by_group ? "block::show_operands();" : "block::sync();");
  }
  e.uses_groups = e.uses_groups || plan.by_group;
  const std::string c = e.tile(op.operands[2], plan.layout);
  if (plan.swapped) std::swap(sources[0], sources[1]);
  if (!plan.by_group) return fmt::format("block::multiply<{}>({}, {}, {})", plan.sums, sources[0], sources[1], c);
  const std::string meanwhile = e.meanwhile.empty() ? "" : ", " + std::exchange(e.meanwhile, "");
  return fmt::format("block::multiply_by_group<{}>({}, {}, {}{})", plan.sums, sources[0], sources[1], c, meanwhile);
}

}  // namespace

std::string begin_product_text(Emitter& e, const Op& dot, const std::string& sums) {
  e.uses_groups = true;
  const auto source = [&](size_t side) {
    const OperandText& text = e.operands.at(dot.operands[side]);
    return fmt::format("block::SwizzledSource<{}>{{{}}}", text.operand, text.pointer);
  };
  const DotPlan& plan = e.assignment.dots.at(&dot);
  return fmt::format("block::begin_product<{}, 1>({}, {}, {})", plan.sums, sums, source(plan.swapped ? 1 : 0),
                     source(plan.swapped ? 0 : 1));
}

std::string put_text(Emitter& e, const Op& dot, size_t side, const OperandText& text) {
  const DotPlan& plan = e.assignment.dots.at(&dot);
  const std::string by = plan.by_group ? "" : plan.by + ", ";
  return fmt::format("block::{}<{}, {}{}>({}, {});", plan.by_group ? "put_swizzled" : "put", text.operand, by, side,
                     text.pointer, e.tile(dot.operands[side]));
}

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
  if (in_place && (plan.by_group || a_there || b_there || is_held(e, op))) {
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
