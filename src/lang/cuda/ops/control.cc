#include <fmt/format.h>

#include <algorithm>

#include "lang/cuda/emitter.h"
#include "lang/cuda/scalar_text.h"

namespace heddle::lang::cuda {
namespace {

// A value as the variable of `like` holds it.
std::string held(Emitter& e, ValueId v, ValueId like) {
  return e.type(v).is_tile() ? e.tile(v, e.layout(like)) : e.text(v);
}

// A variable for a value that changes.
void variable(Emitter& e, ValueId v, const std::string& begins_as) {
  const std::string name = e.name(v);
  e.out.raw(e.placed(fmt::format("{} {}{};", e.held_type(v), name, begins_as)));
  e.bind(v, name);
}

// All ops of a region but its terminator.
const Op* emit_body(Emitter& e, const Region& region) {
  for (const Op& op : region.ops) {
    if (info_of(op.code).has(kTerminator)) return &op;
    e.emit(op);
  }
  return nullptr;
}

void emit_for(Emitter& e, const Op& op) {
  if (emit_pipelined(e, op)) return;
  const KeptForLoop kept(e);
  emit_carried(e, op);
  if (may_keep_operands(e, op) && lay_down_invariants(e, op.regions[0])) {
    e.out.raw(e.uses_groups ? "block::show_operands();" : "block::sync();");
  }
  if (const int64_t unroll = op.attributes.integer("unroll", 1); unroll > 1) {
    e.out.line("#pragma unroll {}", unroll);
  }
  const std::string place = e.comment(op);
  if (!place.empty()) e.out.comment(place);
  const ValueId index = op.regions[0].arguments[0];
  e.bind(index, e.name(index));
  e.out.open(for_head(e, op, e.text(index)));
  emit_for_body(e, op);
  e.out.close();
}

void emit_while(Emitter& e, const Op& op) {
  const Region &before = op.regions[0], &after = op.regions[1];
  for (size_t i = 0; i < before.arguments.size(); ++i) {
    variable(e, before.arguments[i], " = " + held(e, op.operands[i], before.arguments[i]));
  }
  for (const ValueId r : op.results) variable(e, r, "{}");
  for (size_t i = 0; i < after.arguments.size(); ++i) e.bind(after.arguments[i], e.text(op.results[i]));
  e.out.open("while (true) {");
  const Op* const condition = emit_body(e, before);
  assign(e, op.results, {condition->operands.begin() + 1, condition->operands.end()});
  e.out.line("if (!({})) break;", e.text(condition->operands[0]));
  const Op* const yield = emit_body(e, after);
  assign(e, before.arguments, yield->operands);
  e.out.close();
}

void emit_if(Emitter& e, const Op& op) {
  for (const ValueId r : op.results) variable(e, r, "{}");
  const std::string place = e.comment(op);
  if (!place.empty()) e.out.comment(place);
  e.out.open(fmt::format("if ({}) {{", e.text(op.operands[0])));
  for (size_t side = 0; side < op.regions.size(); ++side) {
    const Region& region = op.regions[side];
    const bool empty = region.ops.empty() || (region.ops.size() == 1 && op.results.empty());
    if (side == 1 && empty) break;
    if (side == 1) e.out.middle("} else {");
    if (const Op* const yield = emit_body(e, region)) assign(e, op.results, yield->operands);
  }
  e.out.close();
}

}  // namespace

void assign(Emitter& e, const std::vector<ValueId>& targets, const std::vector<ValueId>& values) {
  std::vector<std::string> texts, variables;
  for (size_t i = 0; i < values.size(); ++i) {
    texts.push_back(held(e, values[i], targets[i]));
    variables.push_back(e.text(targets[i]));
  }
  for (size_t i = 0; i < texts.size(); ++i) {
    // One that another assignment overwrites before it is read.
    const auto before = variables.begin() + static_cast<std::ptrdiff_t>(i);
    if (std::find(variables.begin(), before, e.uniform(values[i]) ? "" : e.text(values[i])) == before) continue;
    const std::string saved = e.fresh("next");
    e.out.raw(e.placed(fmt::format("const auto {} = {};", saved, texts[i])));
    texts[i] = saved;
  }
  for (size_t i = 0; i < texts.size(); ++i) {
    if (texts[i] != variables[i]) e.out.raw(e.placed(fmt::format("{} = {};", variables[i], texts[i])));
  }
}

// Variables for what the loop carries, which are its results.
void emit_carried(Emitter& e, const Op& op) {
  const Region& body = op.regions[0];
  for (size_t i = 1; i < body.arguments.size(); ++i) {
    variable(e, body.arguments[i], " = " + held(e, op.operands[i + 2], body.arguments[i]));
    e.bind(op.results[i - 1], e.text(body.arguments[i]));
  }
}

std::string for_head(Emitter& e, const Op& op, const std::string& index) {
  const std::string type = scalar_type(e.type(op.regions[0].arguments[0]));
  const std::string &from = e.text(op.operands[0]), &to = e.text(op.operands[1]), &step = e.text(op.operands[2]);
  const std::optional<int64_t> known = e.facts_of(op.operands[2]).value;
  if (known == 0) return fmt::format("for ({0} {1} = {2}; false;) {{", type, index, from);
  const std::string goes_on = known ? fmt::format("{} {} {}", index, *known > 0 ? "<" : ">", to)
                                    : fmt::format("{0} > 0 ? {1} < {2} : {0} < 0 && {1} > {2}", step, index, to);
  return fmt::format("for ({0} {1} = {2}; {3}; {1} += {4}) {{", type, index, from, goes_on, step);
}

void emit_for_body(Emitter& e, const Op& op) {
  const Region& body = op.regions[0];
  const Op* const yield = emit_body(e, body);
  assign(e, {body.arguments.begin() + 1, body.arguments.end()}, yield->operands);
}

bool emit_control(Emitter& e, const Op& op) {
  switch (op.code) {
    case OpCode::kFor:
      return emit_for(e, op), true;
    case OpCode::kWhile:
      return emit_while(e, op), true;
    case OpCode::kIf:
      return emit_if(e, op), true;
    default:
      return false;
  }
}

}  // namespace heddle::lang::cuda
