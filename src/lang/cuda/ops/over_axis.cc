#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lang/cuda/emitter.h"
#include "lang/cuda/scalar_text.h"

namespace heddle::lang::cuda {
namespace {

// What the library has for a region of one op that takes both arguments; "" for others.
std::string known_combination(const Emitter& e, const Region& region) {
  if (region.arguments.size() != 2 || region.ops.size() != 2) return {};
  const Op &op = region.ops[0], &yield = region.ops[1];
  const bool takes_both =
      op.operands.size() == 2 && (op.operands == region.arguments ||
                                  (op.operands[0] == region.arguments[1] && op.operands[1] == region.arguments[0]));
  if (!takes_both || op.results.size() != 1 || yield.operands != op.results) return {};
  const bool wins = op.attributes.word("nan") == "propagate";
  (void)e;
  if (op.code == OpCode::kAdd) return "block::sum_of{}";
  if (op.code == OpCode::kMul) return "block::product_of{}";
  if (op.code == OpCode::kMax && !wins) return "block::max_of{}";
  if (op.code == OpCode::kMin && !wins) return "block::min_of{}";
  return {};
}

std::string combination(Emitter& e, const Op& op) {
  const Region& region = op.regions[0];
  if (std::string known = known_combination(e, region); !known.empty()) return known;
  const size_t count = op.operands.size();
  std::vector<std::string> parameters, unpacked;
  for (size_t side = 0; side < 2; ++side) {
    const std::string all = side == 0 ? "a" : "b";
    if (count > 1) parameters.push_back(fmt::format("const auto& {}", all));
    for (size_t i = 0; i < count; ++i) {
      const ValueId argument = region.arguments[side * count + i];
      const std::string type = scalar_type(e.type(argument)), name = e.name(argument);
      e.bind(argument, name);
      if (count == 1) {
        parameters.push_back(fmt::format("{} {}", type, name));
      } else {
        unpacked.push_back(fmt::format("const {} {} = tile::get<{}>({});", type, name, i, all));
      }
    }
  }
  return e.functor(op, region, parameters, unpacked);
}

void declare_results(Emitter& e, const Op& op, const std::string& text, const Layout& from) {
  if (op.results.size() == 1) {
    const bool scalar = e.type(op.results[0]).is_scalar();
    return e.declare(op, op.results[0],
                     scalar ? text : e.converted(text, from, e.layout(op.results[0]), e.type(op.results[0])));
  }
  const std::string all = e.fresh("all");
  e.statement(op, fmt::format("const auto {} = {}", all, text));
  for (size_t i = 0; i < op.results.size(); ++i) {
    const ValueId v = op.results[i];
    if (e.type(v).is_scalar()) {
      e.declare(op, v, fmt::format("tile::get<{}>({})", i, all), true);
    } else {
      e.declare(op, v, e.converted(fmt::format("block::entry<{}>({})", i, all), from, e.layout(v), e.type(v)));
    }
  }
}

void emit_reduction(Emitter& e, const Op& op) {
  const bool scans = op.code == OpCode::kScan;
  const int axis = static_cast<int>(op.attributes.integer("axis"));
  const Layout& layout = e.common_layout(op);
  const std::string f = combination(e, op);
  std::vector<std::string> operands;
  std::vector<int64_t> elements;
  for (const ValueId v : op.operands) {
    operands.push_back(e.tile(v, layout));
    elements.push_back(size_of(e.type(v).element));
  }
  const Layout left = slice(layout, axis);
  e.need_shared(over_axis_bytes(layout, scans ? layout.registers() : left.registers(), axis, elements));
  const std::string reverse = op.attributes.integer("reverse") != 0 ? ", true" : "";
  declare_results(e, op,
                  fmt::format("block::{}<{}{}>(kShared, {}, {})", scans ? "scan" : "reduce", axis, scans ? reverse : "",
                              f, fmt::join(operands, ", ")),
                  scans ? layout : left);
}

void emit_map(Emitter& e, const Op& op) {
  const int64_t pack = op.attributes.integer("pack", 1);
  const Region& region = op.regions[0];
  std::vector<std::string> parameters, operands;
  for (const ValueId argument : region.arguments) {
    const std::string name = e.name(argument);
    e.bind(argument, name);
    parameters.push_back(fmt::format("{} {}", scalar_type(e.type(argument)), name));
  }
  const std::string f = e.functor(op, region, parameters, {});
  const bool tiles = e.type(op.operands[0]).is_tile();
  // Elements that are handed over together are neighbours along the last dimension.
  Layout layout;
  if (tiles) {
    layout = e.common_layout(op);
    if (pack > 1 && layout.run(layout.rank() - 1) % pack != 0) {
      std::vector<int> order;
      for (int d = layout.rank(); d-- > 0;) order.push_back(d);
      layout = blocked(layout.shape, order, pack, e.warps);
    }
  }
  for (const ValueId v : op.operands) operands.push_back(tiles ? e.tile(v, layout) : e.text(v));
  const std::string all = fmt::format("{}", fmt::join(operands, ", "));
  if (pack == 1) {
    return declare_results(e, op, tiles ? fmt::format("block::map({}, {})", f, all) : fmt::format("{}({})", f, all),
                           layout);
  }
  for (size_t i = 0; i < op.results.size(); ++i) {
    const ValueId v = op.results[i];
    e.declare(
        op, v,
        e.converted(fmt::format("block::map_packed<{}, {}>({}, {})", pack, i, f, all), layout, e.layout(v), e.type(v)));
  }
}

}  // namespace

bool emit_over_axis(Emitter& e, const Op& op) {
  switch (op.code) {
    case OpCode::kReduce:
    case OpCode::kScan:
      return emit_reduction(e, op), true;
    case OpCode::kMap:
      return emit_map(e, op), true;
    case OpCode::kSort: {
      const Type& type = e.type(op.operands[0]);
      e.need_shared(type.elements() * size_of(type.element));
      e.declare(op, op.results[0],
                fmt::format("block::sort<{}, {}>(kShared, {})", op.attributes.integer("axis"),
                            op.attributes.integer("descending") != 0 ? "true" : "false",
                            e.tile(op.operands[0], e.layout(op.results[0]))));
      return true;
    }
    case OpCode::kHistogram: {
      e.need_shared(e.type(op.results[0]).elements() * 4);
      std::string mask = "true";
      if (op.operands.size() > 1) {
        mask = e.uniform(op.operands[1]) ? e.text(op.operands[1]) : e.tile(op.operands[1], e.layout(op.operands[0]));
      }
      e.declare(op, op.results[0],
                fmt::format("block::histogram<{}>(kShared, {}, {})", e.layout_name(e.layout(op.results[0])),
                            e.tile(op.operands[0]), mask));
      return true;
    }
    default:
      return false;
  }
}

}  // namespace heddle::lang::cuda
