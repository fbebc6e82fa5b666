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
  e.out.raw(fmt::format("{} {}{};", e.held_type(v), name, begins_as));
  e.bind(v, name);
}

// The variables of targets[i] = values[i] for all i at once.
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
    e.out.raw(fmt::format("const auto {} = {};", saved, texts[i]));
    texts[i] = saved;
  }
  for (size_t i = 0; i < texts.size(); ++i) {
    if (texts[i] != variables[i]) e.out.raw(fmt::format("{} = {};", variables[i], texts[i]));
  }
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
  const Region& body = op.regions[0];
  const std::vector<ValueId> carried(body.arguments.begin() + 1, body.arguments.end());
  for (size_t i = 1; i < body.arguments.size(); ++i) {
    variable(e, body.arguments[i], " = " + held(e, op.operands[i + 2], body.arguments[i]));
  }
  const ValueId index = body.arguments[0];
  const std::string type = scalar_type(e.type(index)), i = e.name(index);
  e.bind(index, i);
  const std::string &from = e.text(op.operands[0]), &to = e.text(op.operands[1]), &step = e.text(op.operands[2]);
  const std::optional<int64_t> known = e.facts_of(op.operands[2]).value;
  const std::string goes_on = known ? fmt::format("{} {} {}", i, *known > 0 ? "<" : ">", to)
                                    : fmt::format("{0} > 0 ? {1} < {2} : {0} < 0 && {1} > {2}", step, i, to);
  if (const int64_t unroll = op.attributes.integer("unroll", 1); unroll > 1)
    e.out.raw(fmt::format("#pragma unroll {}", unroll));
  const std::string place = e.comment(op);
  if (!place.empty()) e.out.comment(place);
  e.out.open(known && *known == 0
                 ? fmt::format("for ({0} {1} = {2}; false;) {{", type, i, from)
                 : fmt::format("for ({0} {1} = {2}; {3}; {1} += {4}) {{", type, i, from, goes_on, step));
  const Op* const yield = emit_body(e, body);
  assign(e, carried, yield->operands);
  e.out.close();
  for (size_t r = 0; r < op.results.size(); ++r) e.bind(op.results[r], e.text(carried[r]));
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
  e.out.raw(fmt::format("if (!({})) break;", e.text(condition->operands[0])));
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
