#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "lang/cuda/emitter.h"
#include "lang/cuda/pipeline.h"

namespace heddle::lang::cuda {
namespace {

bool has_product(const Region& region) {
  return std::any_of(region.ops.begin(), region.ops.end(), [](const Op& op) {
    return op.code == OpCode::kDot || std::any_of(op.regions.begin(), op.regions.end(), has_product);
  });
}

// The tile of pointers of a load and its mask.
std::pair<std::string, std::string> addresses(Emitter& e, const Op& load) {
  if (load.code == OpCode::kLoadView) {
    const std::string layout = e.layout_name(e.layout(load.results[0])), window = e.fresh("window");
    e.out.line("const auto {} = {};", window, window_text(e, load, checked_of(load)));
    return {fmt::format("block::pointers<{}>({})", layout, window),
            fmt::format("block::inside<{}>({})", layout, window)};
  }
  const ValueId pointer = load.operands[0];
  if (load.operands.size() < 2) return {e.tile(pointer), "true"};
  const ValueId mask = load.operands[1];
  return {e.tile(pointer), e.uniform(mask) ? e.text(mask) : e.tile(mask, e.layout(pointer))};
}

// The loop after a load that keeps the load's result in shared memory, and how the result gets there.
std::optional<StagedLoad> kept_by_a_loop(const Emitter& e, const Op& load) {
  const Region* const region = e.uses.region(load.results[0]);
  for (const Op& op : region->ops) {
    if (op.code != OpCode::kFor || e.uses.order(op) < e.uses.order(load) || !may_keep_operands(e, op)) continue;
    if (auto staged = plan_kept_load(e.kernel, op, load, e.windows, e.facts, e.assignment)) return staged;
  }
  return std::nullopt;
}

}  // namespace

std::string copy_text(Emitter& e, const StagedLoad& load, const std::string& slot) {
  const auto [pointers, mask] = addresses(e, *load.load);
  return fmt::format("block::{}<{}, {}, {}>({}, {}, {})", load.by_group ? "copy_async_swizzled" : "copy_async",
                     load.operand, load.row_dim, load.vector, slot, pointers, mask);
}

// Loops that write no memory have their own loads, which run ahead and need the memory; so have loops around loops with
// products.
bool may_keep_operands(const Emitter& e, const Op& loop) {
  const Region& body = loop.regions[0];
  return e.options.keeps && has_trait(body, kWrites) &&
         std::none_of(body.ops.begin(), body.ops.end(), [](const Op& op) {
           return (op.code == OpCode::kFor || op.code == OpCode::kWhile) &&
                  std::any_of(op.regions.begin(), op.regions.end(), has_product);
         });
}

bool copy_kept_load(Emitter& e, const Op& load) {
  const std::optional<StagedLoad> staged = kept_by_a_loop(e, load);
  if (!staged) return false;
  const int64_t at = e.keep(staged->bytes);
  const auto slot = [&](const std::string& operand) { return fmt::format("kShared.slot<{}, {}>()", operand, at); };
  e.out.raw("block::sync();");  // others may still read what the memory held
  e.statement(load, copy_text(e, *staged, slot(staged->operand)));
  e.out.raw("tile::sm80::commit_copies();");
  e.out.line("block::wait_for_{}<0>();", staged->by_group ? "operands" : "copies");
  for (const StagedLoad::Read& read : staged->reads) e.operands[read.value] = {read.operand, slot(read.operand), true};
  e.uses_groups = e.uses_groups || staged->by_group;
  return true;
}

bool lay_down_invariants(Emitter& e, const Region& body) {
  bool any = false;
  for (const Op& op : body.ops) {
    if (op.code != OpCode::kDot) continue;
    const DotPlan& plan = e.assignment.dots.at(&op);
    if (plan.by_thread || plan.pieces != 1 || e.type(op.operands[0]).rank() != 2) continue;
    for (const size_t side : {size_t{0}, size_t{1}}) {
      const ValueId v = op.operands[side];
      const Region* const home = e.uses.region(v);
      const bool inside = std::any_of(body.ops.begin(), body.ops.end(), [&](const Op& o) {
        return std::find(o.results.begin(), o.results.end(), v) != o.results.end();
      });
      if (inside || home == &body || e.operands.count(v) != 0 || e.uniform(v)) continue;
      const OperandText text = operand_text(e, op, side, "");
      const std::string name = e.fresh("kept");
      if (!any) e.out.raw("block::sync();");  // others may still read what the memory held
      e.uses_groups = e.uses_groups || plan.by_group;
      const int64_t at = e.keep(operand_size(e, op, side));
      e.out.line("auto* const {} = kShared.slot<{}, {}>();", name, text.operand, at);
      e.out.raw(put_text(e, op, side, {text.operand, name, false}));
      e.operands[v] = {text.operand, name, false};
      any = true;
    }
  }
  return any;
}

}  // namespace heddle::lang::cuda
