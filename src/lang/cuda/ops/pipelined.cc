#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "lang/cuda/emitter.h"
#include "lang/cuda/pipeline.h"
#include "lang/cuda/scalar_text.h"

namespace heddle::lang::cuda {
namespace {

// What operators of the loop need beside its slots, as a first guess.
constexpr int64_t kForOperators = 16 << 10;
constexpr int64_t kAlignment = 1024;  // of operands that are swizzled

std::string slot(const StagedLoad& load, int64_t offset, int64_t stride, const std::string& index) {
  return fmt::format("kShared.slot<{}, {}, {}>({})", load.operand, offset, stride, index);
}

// The tile of pointers of a load and its mask.
std::pair<std::string, std::string> addresses(Emitter& e, const Op& load) {
  if (load.code == OpCode::kLoadView) {
    const std::string layout = e.layout_name(e.layout(load.results[0])), window = e.fresh("window");
    e.out.raw(fmt::format("const auto {} = {};", window, window_text(e, load, checked_of(load))));
    return {fmt::format("block::pointers<{}>({})", layout, window),
            fmt::format("block::inside<{}>({})", layout, window)};
  }
  const ValueId pointer = load.operands[0];
  if (load.operands.size() < 2) return {e.tile(pointer), "true"};
  const ValueId mask = load.operands[1];
  return {e.tile(pointer), e.uniform(mask) ? e.text(mask) : e.tile(mask, e.layout(pointer))};
}

// Operands of the loop's products that do not change in it are laid down before it.
void lay_down_invariants(Emitter& e, const Region& body) {
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
      const int64_t at = e.keep(operand_size(e, op, side));
      e.out.raw(fmt::format("auto* const {} = kShared.slot<{}, {}>();", name, text.operand, at));
      e.out.raw(put_text(e, op, side, {text.operand, name, false}));
      e.operands[v] = {text.operand, name, false};
    }
  }
}

}  // namespace

bool emit_pipelined(Emitter& e, const Op& op) {
  if (e.options.stages < 2) return false;
  const auto asked = static_cast<int>(op.attributes.integer("num_stages", e.options.stages));
  const int64_t left = e.options.most_shared - e.kept_bytes - kForOperators;
  const std::optional<Pipeline> p =
      plan_pipeline(e.kernel, op, e.uses, e.facts, e.assignment, std::min(asked, e.options.stages), left);
  if (!p) return false;
  const Region& body = op.regions[0];
  const ValueId index = body.arguments[0];
  const int64_t before = e.kept_bytes, stride = p->slot_bytes(), first = e.keep(stride * p->stages);
  e.out.raw("__syncthreads();");
  const std::string from = e.text(op.operands[0]), to = e.text(op.operands[1]), step = e.text(op.operands[2]);
  emit_carried(e, op);
  std::vector<std::string> own;
  for (const ValueId v : body.arguments) own.push_back(v == index ? "" : e.text(v));

  // What runs ahead: the index, and what addresses are made of.
  const std::string ahead = e.fresh("ahead"), fill = e.fresh("fill"), use = e.fresh("use"), copy = e.fresh("copy_next");
  e.out.raw(fmt::format("{} {} = {};", scalar_type(e.type(index)), ahead, from));
  e.bind(index, ahead);
  std::vector<ValueId> targets, values;
  for (const size_t i : p->carried) {
    const ValueId v = body.arguments[i + 1];
    const std::string name = e.fresh(own[i + 1] + "_ahead");
    e.out.raw(fmt::format("auto {} = {};", name, own[i + 1]));
    e.bind(v, name);
    targets.push_back(v);
    values.push_back(body.ops.back().operands[i]);
  }
  e.out.raw(fmt::format("int {} = 0, {} = 0;", fill, use));
  e.out.open(fmt::format("const auto {} = [&] {{", copy));
  const std::optional<int64_t> known = e.facts_of(op.operands[2]).value;
  e.out.open(known ? fmt::format("if ({} {} {}) {{", ahead, *known > 0 ? "<" : ">", to)
                   : fmt::format("if ({0} > 0 ? {1} < {2} : {0} < 0 && {1} > {2}) {{", step, ahead, to));
  for (const Op& inner : body.ops) {
    if (p->ahead.count(&inner) != 0) e.emit(inner);
  }
  int64_t at = first;
  bool groups = false;
  for (const StagedLoad& l : p->loads) {
    const auto [pointers, mask] = addresses(e, *l.load);
    groups = groups || e.assignment.dots.at(l.dot).by_group;
    const char* const callee = e.assignment.dots.at(l.dot).by_group ? "copy_async_swizzled" : "copy_async";
    e.statement(*l.load, fmt::format("block::{}<{}, {}, {}>({}, {}, {})", callee, l.operand, l.row_dim, l.vector,
                                     slot(l, at, stride, fill), pointers, mask));
    e.operands[l.turn == nullptr ? l.load->results[0] : l.turn->results[0]] = {l.operand, slot(l, at, stride, use),
                                                                               true};
    at += (l.bytes + kAlignment - 1) / kAlignment * kAlignment;
  }
  assign(e, targets, values);
  e.out.close();
  e.out.raw("tile::sm80::commit_copies();");
  e.out.raw(fmt::format("{} += {};", ahead, step));
  e.out.raw(fmt::format("{0} = {0} + 1 == {1} ? 0 : {0} + 1;", fill, p->stages));
  e.out.close("};");
  e.out.raw(fmt::format("for (int i = 0; i < {}; ++i) {}();", p->stages - 1, copy));

  for (size_t i = 1; i < body.arguments.size(); ++i) e.bind(body.arguments[i], own[i]);
  lay_down_invariants(e, body);
  e.bind(index, e.name(index));
  e.out.raw("#pragma unroll 1");
  e.out.open(for_head(e, op, e.text(index)));
  const char* const wait = groups ? "operands" : "copies";
  e.out.raw(fmt::format("block::wait_for_{}<{}>();", wait, p->stages - 2));
  // Copies are asked for while the first product runs, where the tensor cores do not hold up the thread.
  const bool overlaps = std::any_of(body.ops.begin(), body.ops.end(), [&](const Op& inner) {
    return inner.code == OpCode::kDot && e.assignment.dots.at(&inner).by_group;
  });
  if (overlaps) {
    e.meanwhile = copy;
  } else {
    e.out.raw(fmt::format("{}();", copy));
  }
  emit_for_body(e, op);
  e.out.raw(fmt::format("{0} = {0} + 1 == {1} ? 0 : {0} + 1;", use, p->stages));
  e.out.close();
  e.out.raw(fmt::format("block::wait_for_{}<0>();", wait));
  e.kept_bytes = before;
  return true;
}

}  // namespace heddle::lang::cuda
