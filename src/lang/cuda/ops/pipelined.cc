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

std::string slot(const std::string& operand, int64_t offset, int64_t stride, const std::string& index) {
  return fmt::format("kShared.slot<{}, {}, {}>({})", operand, offset, stride, index);
}

}  // namespace

Ahead open_ahead(Emitter& e, const Op& loop, const Pipeline& pipeline, const std::string& lambda) {
  const Region& body = loop.regions[0];
  Ahead ahead{e.fresh("ahead"), e.fresh(lambda), {}, {}};
  e.out.line("{} {} = {};", scalar_type(e.type(body.arguments[0])), ahead.index, e.text(loop.operands[0]));
  e.bind(body.arguments[0], ahead.index);
  for (const size_t i : pipeline.carried) {
    const ValueId v = body.arguments[i + 1];
    const std::string own = e.text(v), name = e.fresh(own + "_ahead");
    e.out.line("auto {} = {};", name, own);
    e.bind(v, name);
    ahead.targets.push_back(v);
    ahead.values.push_back(body.ops.back().operands[i]);
  }
  e.out.open(fmt::format("const auto {} = [&] {{", ahead.lambda));
  const std::string to = e.text(loop.operands[1]), step = e.text(loop.operands[2]);
  const std::optional<int64_t> known = e.facts_of(loop.operands[2]).value;
  e.out.open(known ? fmt::format("if ({} {} {}) {{", ahead.index, *known > 0 ? "<" : ">", to)
                   : fmt::format("if ({0} > 0 ? {1} < {2} : {0} < 0 && {1} > {2}) {{", step, ahead.index, to));
  for (const Op& inner : body.ops) {
    if (pipeline.ahead.count(&inner) != 0) e.emit(inner);
  }
  return ahead;
}

void close_ahead(Emitter& e, const Op& loop, const Ahead& ahead, const std::vector<std::string>& always) {
  assign(e, ahead.targets, ahead.values);
  e.out.close();
  for (const std::string& line : always) e.out.raw(line);
  e.out.line("{} += {};", ahead.index, e.text(loop.operands[2]));
  e.out.close("};");
}

void skip_addresses(Emitter& e, const Region& body, const Pipeline& pipeline) {
  std::set<const Op*> made;
  for (const StagedLoad& l : pipeline.loads) made.insert(l.load);
  for (size_t i = body.ops.size(); i-- > 0;) {
    const Op& op = body.ops[i];
    if (!info_of(op.code).has(kPure) || !op.regions.empty() || op.results.size() != 1) continue;
    const std::vector<const Op*>& users = e.uses.users(op.results[0]);
    if (std::all_of(users.begin(), users.end(), [&](const Op* user) { return made.count(user) != 0; })) {
      made.insert(&op);
      e.skipped.insert(&op);
    }
  }
}

bool emit_pipelined(Emitter& e, const Op& op) {
  if (e.options.stages < 2) return false;
  const auto asked = static_cast<int>(op.attributes.integer("num_stages", e.options.stages));
  const int64_t left = e.options.most_shared - e.kept_bytes - kForOperators;
  const std::optional<Pipeline> p = plan_pipeline(e.kernel, op, e.windows, e.facts, e.assignment,
                                                  {std::min(asked, e.options.stages), left, e.options.boxes});
  if (!p) return false;
  if (p->by_boxes) return emit_by_boxes(e, op, *p), true;
  if (p->by_registers) return emit_by_registers(e, op, *p), true;
  const Region& body = op.regions[0];
  const ValueId index = body.arguments[0];
  const KeptForLoop kept(e);
  const int64_t stride = p->slot_bytes(), first = e.keep(stride * p->stages);
  e.out.raw("block::sync();");
  emit_carried(e, op);
  std::vector<std::string> own;
  for (const ValueId v : body.arguments) own.push_back(v == index ? "" : e.text(v));

  const std::string fill = e.fresh("fill"), use = e.fresh("use");
  e.out.line("int {} = 0, {} = 0;", fill, use);
  const Ahead ahead = open_ahead(e, op, *p, "copy_next");
  int64_t at = first;
  bool groups = false;
  for (const StagedLoad& l : p->loads) {
    groups = groups || l.by_group;
    e.statement(*l.load, copy_text(e, l, slot(l.operand, at, stride, fill)));
    for (const StagedLoad::Read& read : l.reads) {
      e.operands[read.value] = {read.operand, slot(read.operand, at, stride, use), true};
    }
    at += aligned_slot(l.bytes);
  }
  close_ahead(e, op, ahead,
              {"tile::sm80::commit_copies();", fmt::format("{0} = {0} + 1 == {1} ? 0 : {0} + 1;", fill, p->stages)});
  const std::optional<AccumulatingProduct> product = accumulating_product(op, *p, e.uses, e.assignment);
  // A product that is not waited for still reads its slot.
  const int ahead_by = p->stages - (product ? 2 : 1);
  e.out.line("for (int i = 0; i < {}; ++i) {}();", ahead_by, ahead.lambda);

  for (size_t i = 1; i < body.arguments.size(); ++i) e.bind(body.arguments[i], own[i]);
  lay_down_invariants(e, body);
  skip_addresses(e, body, *p);
  e.bind(index, e.name(index));
  e.out.raw("#pragma unroll 1");
  e.out.open(for_head(e, op, e.text(index)));
  const char* const wait = groups ? "operands" : "copies";
  e.out.line("block::wait_for_{}<{}>();", wait, ahead_by - 1);
  const std::string next = fmt::format("{0} = {0} + 1 == {1} ? 0 : {0} + 1;", use, p->stages);
  if (product) {
    emit_accumulating(e, op, *product, {next, ahead.lambda + "();"});
  } else {
    // Copies are asked for while the first product runs, where the tensor cores do not hold up the thread.
    if (overlaps(e, body)) {
      e.meanwhile = ahead.lambda;
    } else {
      e.out.line("{}();", ahead.lambda);
    }
    emit_for_body(e, op);
    e.out.raw(next);
  }
  e.out.close();
  if (product) e.out.line("block::end_products({});", e.text(body.arguments[product->carried + 1]));
  e.out.line("block::wait_for_{}<0>();", wait);
  return true;
}

}  // namespace heddle::lang::cuda
