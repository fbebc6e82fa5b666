#include <fmt/format.h>

#include "lang/cuda/emitter.h"

namespace heddle::lang::cuda {
namespace {

// Bytes of an operand in shared memory: block::Operand.
int64_t operand_bytes(int64_t rows, int64_t depth, bool along_k, int64_t covered, int64_t size) {
  const int64_t step = size > 4 ? 1 : 32 / size;
  const int64_t whole_depth = (depth + step - 1) / step * step, whole_rows = (covered + 15) / 16 * 16;
  const int64_t lines = along_k ? whole_rows : whole_depth, line = along_k ? whole_depth : whole_rows;
  const int64_t pieces = (line * size + 15) / 16;
  (void)rows;
  return lines * (pieces + (pieces % 2 == 0 ? 1 : 0)) * 16;
}

// A tile of a batch has it in its outermost registers.
Layout operand_layout(const Layout& layout, int64_t warps) {
  if (layout.rank() == 2) return layout;
  const std::vector<int64_t> shape(layout.shape.begin() + 1, layout.shape.end());
  return batched(blocked(shape, {1, 0}, shape[1] % 4 == 0 ? 4 : 1, warps), layout.shape[0]);
}

}  // namespace

bool emit_product(Emitter& e, const Op& op) {
  if (op.code != OpCode::kDot) return false;
  const DotPlan& plan = e.assignment.dots.at(&op);
  const Layout a = operand_layout(e.layout(op.operands[0]), e.warps);
  const Layout b = operand_layout(e.layout(op.operands[1]), e.warps);
  const int rank = a.rank();
  const auto row = static_cast<size_t>(rank - 2), column = static_cast<size_t>(rank - 1);
  const int64_t m = a.shape[row], k = a.shape[column], n = b.shape[column];
  const bool either = plan.element == 2;
  const bool a_along_k = !either || a.run(rank - 2) <= a.run(rank - 1);
  const bool b_along_k = !either || b.run(rank - 1) < b.run(rank - 2);
  // Rows that warps read beyond the last one: at most one block of each.
  const int64_t extra_m = plan.by_thread ? 0 : 16 * e.warps, extra_n = plan.by_thread ? 0 : 8 * e.warps + 8;
  e.need_shared(plan.pieces * (operand_bytes(m, k, a_along_k, m + extra_m, plan.element) +
                               operand_bytes(n, k, b_along_k, n + extra_n, plan.element)));
  const std::string text =
      fmt::format("block::dot<{}, {}>(kShared, {}, {}, {})", plan.by, plan.sums, e.tile(op.operands[0], a),
                  e.tile(op.operands[1], b), e.tile(op.operands[2], plan.layout));
  e.declare(op, op.results[0], e.converted(text, plan.layout, e.layout(op.results[0]), e.type(op.results[0])));
  return true;
}

}  // namespace heddle::lang::cuda
