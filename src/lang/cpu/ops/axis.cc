#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "lang/cpu/expression.h"
#include "lang/cpu/sinks.h"
#include "lang/cpu/types.h"

namespace heddle::lang::cpu {
namespace {

std::string joined(const std::vector<std::string>& names) {
  return fmt::format("{}", fmt::join(names, ", "));
}

bool is_elementwise(const Region& region) {
  return std::all_of(region.ops.begin(), region.ops.end(), [](const Op& op) {
    return info_of(op.code).has(kElementwise) || info_of(op.code).has(kTerminator);
  });
}

// The ops of an elementwise region on W lanes of its arguments; the names of what it yields.
std::vector<std::string> lanes_of_region(SinkContext& c, Writer& out, const Region& region,
                                         const std::vector<std::string>& arguments) {
  std::map<ValueId, std::string> names;
  for (size_t i = 0; i < arguments.size(); ++i) names[region.arguments[i]] = arguments[i];
  const auto name_of = [&](ValueId value) {
    const auto found = names.find(value);
    return found != names.end() ? found->second : fmt::format("widen<W>({})", c.state.at(value).name);
  };
  for (const Op& op : region.ops) {
    std::vector<std::string> operands;
    for (const ValueId operand : op.operands) operands.push_back(name_of(operand));
    if (info_of(op.code).has(kTerminator)) return operands;
    const std::string name = c.state.fresh(op.results[0]);
    std::string text = expression(c.state.kernel, op, operands);
    if (op.operands.empty()) text = fmt::format("widen<W>({})", text);
    out.line("const auto {} = {};", name, text);
    names[op.results[0]] = name;
  }
  return {};
}

// const auto NAME = a combination of tuples, for reduce_lanes() and scans.
void write_combination(SinkContext& c, Writer& out, const std::string& name, const Region& region) {
  const size_t count = region.arguments.size() / 2;
  Writer body;
  std::vector<std::string> arguments;
  const auto take = [&](const char* from, size_t i, size_t argument) {
    arguments.push_back(c.state.fresh(region.arguments[argument]));
    body.line("const auto {} = get<{}>({});", arguments.back(), i, from);
  };
  for (size_t i = 0; i < count; ++i) take("a", i, i);
  for (size_t i = 0; i < count; ++i) take("b", i, count + i);
  std::vector<std::string> yields;
  if (is_elementwise(region)) {
    Writer head;
    head.raw("constexpr int W = lane_count<element_t<0, tuple<V...>>>;");
    yields = lanes_of_region(c, body, region, arguments);
    head.append(body);
    head.line("return tuple<V...>{{{{{{{}}}}}}};", fmt::join(yields, "}, {"));
    out.block(fmt::format("const auto {} = [&]<typename... V>(const tuple<V...>& a, const tuple<V...>& b) "
                          "__attribute__((always_inline))",
                          name),
              head, "};");
    return;
  }
  Writer* const outer = std::exchange(c.out, &body);
  yields = c.run_region(region, arguments);
  c.out = outer;
  body.line("return make_tuple({});", joined(yields));
  Writer scalars;
  scalars.block("return by_lane(a_lanes, b_lanes, [&](const auto& a, const auto& b)", body, "});");
  out.block(fmt::format("const auto {} = [&](const auto& a_lanes, const auto& b_lanes)", name), scalars, "};");
}

std::vector<std::string> result_buffers(SinkContext& c, const Op& op) {
  std::vector<std::string> buffers;
  for (const ValueId result : op.results) buffers.push_back(c.state.new_buffer(result));
  return buffers;
}

void set_buffers(SinkContext& c, const Op& op, const std::vector<std::string>& buffers) {
  for (size_t i = 0; i < buffers.size(); ++i) c.state.set_buffer(op.results[i], buffers[i]);
}

// The numbers of elements before an axis and behind it.
struct Around {
  int64_t outer = 1, stride = 1;
};
Around around(const std::vector<int64_t>& shape, size_t axis) {
  Around sizes;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (d != axis) (d < axis ? sizes.outer : sizes.stride) *= shape[d];
  }
  return sizes;
}

// ---- Reductions

void reduce_last(SinkContext& c, const Op& op, const std::string& combine) {
  const std::vector<int64_t>& shape = c.state.type(op.operands[0]).shape;
  const bool scalar = c.state.type(op.results[0]).is_scalar();
  const std::vector<std::string> buffers = scalar ? std::vector<std::string>() : result_buffers(c, op);
  std::vector<std::string> names;
  for (const ValueId result : op.results) names.push_back(scalar ? c.state.fresh(result) : "");
  for (size_t i = 0; scalar && i < names.size(); ++i) {
    const Type& type = c.state.type(op.results[i]);
    c.out->raw(is_mask(type) ? fmt::format("mask<4, 1> {};", names[i])
                             : fmt::format("vec<{}, 1> {};", lane_type(type), names[i]));
  }
  bool alike = true;
  c.loops.reduce_rows(
      *c.out, shape,
      [&](Lanes& lanes, const Coords& coords) {
        std::vector<std::string> values;
        for (const ValueId operand : op.operands) {
          alike = alike && lanes.bounds.is_alike_behind(lanes, operand, coords);
          const char* form = is_mask(c.state.type(operand)) ? "mask<4, W>({})" : "{}";
          values.push_back(fmt::format(fmt::runtime(form), lanes.wide(operand, coords)));
        }
        return fmt::format("return make_tuple({});", joined(values));
      },
      [&](Writer& row, const Lanes& lanes, const Coords& coords) {
        row.block(
            fmt::format("const auto reduced = reduce_lanes<{}, {}, {}{}>({}[&]<int W>(int64_t c, auto n, auto form) "
                        "__attribute__((always_inline))",
                        vector_width(shape.back()), results_at_once(shape.back()), shape.back(),
                        lanes.bounds.empty() ? ""
                        : alike              ? ", true"
                                             : ", false",
                        lanes.bounds.argument()),
            lanes.inner, fmt::format("}}, {});", combine));
        const std::vector<int64_t> outer(shape.begin(), shape.end() - 1);
        const std::string at = Lanes::place(outer, {coords.begin(), coords.end() - 1}).offset;
        for (size_t i = 0; i < op.results.size(); ++i) {
          row.raw(scalar ? fmt::format("{} = get<{}>(reduced);", names[i], i)
                         : fmt::format("hold({} + {}, get<{}>(reduced), index_constant<1>{{}});", buffers[i], at, i));
        }
      });
  if (!scalar) set_buffers(c, op, buffers);
  for (size_t i = 0; scalar && i < names.size(); ++i) c.state.set_scalar(op.results[i], names[i]);
}

std::string held_text(const Type& type, const std::string& from) {
  return fmt::format("{}<W>({}, n)", is_mask(type) ? "held_mask" : "held", from);
}

// Along another axis: rows are combined with what their buffer holds.
void reduce_rows(SinkContext& c, const Op& op, const std::string& combine) {
  const auto axis = static_cast<size_t>(op.attributes.integer("axis"));
  const std::vector<int64_t>& shape = c.state.type(op.operands[0]).shape;
  const std::vector<std::string> buffers = result_buffers(c, op);
  c.loops.loop(*c.out, shape, [&](Lanes& lanes, const Coords& coords) {
    std::vector<int64_t> left = shape;
    left.erase(left.begin() + static_cast<std::ptrdiff_t>(axis));
    Coords place = coords;
    place.erase(place.begin() + static_cast<std::ptrdiff_t>(axis));
    const std::string at = Lanes::place(left, place).offset;
    std::vector<std::string> values, sums;
    for (size_t i = 0; i < op.operands.size(); ++i) {
      values.push_back(lanes.wide(op.operands[i], coords));
      sums.push_back(held_text(c.state.type(op.operands[i]), fmt::format("{} + {}", buffers[i], at)));
    }
    lanes.inner.line("auto reduced = make_tuple({});", joined(values));
    lanes.inner.line("if ({} != 0) reduced = {}(make_tuple({}), reduced);", shape[axis] == 1 ? "0" : coords[axis].text,
                     combine, joined(sums));
    for (size_t i = 0; i < buffers.size(); ++i) {
      lanes.inner.line("hold({} + {}, get<{}>(reduced), n);", buffers[i], at, i);
    }
  });
  set_buffers(c, op, buffers);
}

void reduce(SinkContext& c, const Op& op) {
  for (const ValueId operand : op.operands) c.loops.prepare(*c.out, operand);
  add_place(c, op);
  const std::string combine = c.state.fresh(op.results[0]) + "combine";
  write_combination(c, *c.out, combine, op.regions[0]);
  c.loops.written();
  const bool last = op.attributes.integer("axis") + 1 == c.state.type(op.operands[0]).rank();
  last ? reduce_last(c, op, combine) : reduce_rows(c, op, combine);
}

// ---- Scans: along the last axis element by element, along others row by row

void scan(SinkContext& c, const Op& op) {
  const std::vector<int64_t>& shape = c.state.type(op.operands[0]).shape;
  const auto axis = static_cast<size_t>(op.attributes.integer("axis"));
  const bool reverse = op.attributes.integer("reverse") != 0;
  std::vector<std::string> from;
  for (const ValueId operand : op.operands) from.push_back(c.loops.buffer(*c.out, operand));
  add_place(c, op);
  const std::string combine = c.state.fresh(op.results[0]) + "combine";
  write_combination(c, *c.out, combine, op.regions[0]);
  const std::vector<std::string> buffers = result_buffers(c, op);
  const auto [outer, stride] = around(shape, axis);
  const int64_t extent = shape[axis], before = reverse ? stride : -stride;
  std::vector<std::string> values, sums;
  for (size_t i = 0; i < op.operands.size(); ++i) {
    const Type& type = c.state.type(op.operands[i]);
    values.push_back(held_text(type, fmt::format("{} + at", from[i])));
    sums.push_back(held_text(type, fmt::format("{} + at + ({})", buffers[i], before)));
  }
  Writer lanes;
  lanes.raw("const int64_t at = row + c;");
  lanes.line("auto scanned = make_tuple({});", joined(values));
  lanes.line("if (k > 0) scanned = {}(make_tuple({}), scanned);", combine, joined(sums));
  for (size_t i = 0; i < buffers.size(); ++i) {
    lanes.line("hold({} + at, get<{}>(scanned), n);", buffers[i], i);
  }
  Writer steps;
  steps.line("const int64_t row = (o * {} + {}) * {};", extent, reverse ? fmt::format("{} - k", extent - 1) : "k",
             stride);
  steps.block(fmt::format("for_all_lanes<{}, {}>([&]<int W>(int64_t c, auto n) __attribute__((always_inline))",
                          vector_width(stride), stride),
              lanes, "});");
  Writer inner;
  inner.block(fmt::format("for (int64_t k = 0; k < {}; ++k)", extent), steps);
  c.out->block(fmt::format("for (int64_t o = 0; o < {}; ++o)", outer), inner);
  set_buffers(c, op, buffers);
}

// ---- Sorts, histograms, maps

void sort(SinkContext& c, const Op& op) {
  const Type& type = c.state.type(op.operands[0]);
  const auto axis = static_cast<size_t>(op.attributes.integer("axis"));
  c.loops.prepare(*c.out, op.operands[0]);
  const std::string buffer = c.state.new_buffer(op.results[0]);
  c.loops.write_to(*c.out, op.operands[0], buffer);
  add_place(c, op);
  const auto [outer, stride] = around(type.shape, axis);
  // A mask that is set is -1.
  const bool descending = (op.attributes.integer("descending") != 0) != is_mask(type);
  Writer lines;
  lines.line("sort_line({0} + o / {1} * {2} + o % {1}, {1}, {3}, {4});", buffer, stride, stride * type.shape[axis],
             type.shape[axis], descending);
  c.out->block(fmt::format("for (int64_t o = 0; o < {}; ++o)", outer * stride), lines);
  c.state.set_buffer(op.results[0], buffer);
}

void histogram(SinkContext& c, const Op& op) {
  const int64_t bins = c.state.type(op.results[0]).elements(), count = c.state.type(op.operands[0]).elements();
  const std::string values = c.loops.buffer(*c.out, op.operands[0]);
  const std::string mask = op.operands.size() > 1 ? c.loops.buffer(*c.out, op.operands[1]) : "";
  const std::string buffer = c.state.new_buffer(op.results[0]);
  add_place(c, op);
  c.out->line("for (int64_t i = 0; i < {}; ++i) {}[i] = 0;", bins, buffer);
  c.out->line("for (int64_t i = 0; i < {0}; ++i) {{ if ({1}uint64_t({2}[i]) < {3}) ++{4}[{2}[i]]; }}", count,
              mask.empty() ? "" : mask + "[i] != 0 && ", values, bins, buffer);
  c.state.set_buffer(op.results[0], buffer);
}

void map_elementwise(SinkContext& c, const Op& op) {
  for (const ValueId operand : op.operands) c.loops.prepare(*c.out, operand);
  add_place(c, op);
  const std::vector<int64_t>& shape = c.state.type(op.operands[0]).shape;
  const std::vector<std::string> buffers = result_buffers(c, op);
  c.loops.written();
  c.loops.loop(*c.out, shape, [&](Lanes& lanes, const Coords& coords) {
    std::vector<std::string> arguments;
    for (const ValueId operand : op.operands) arguments.push_back(lanes.wide(operand, coords));
    const std::vector<std::string> yields = lanes_of_region(c, lanes.inner, op.regions[0], arguments);
    for (size_t i = 0; i < yields.size(); ++i) {
      lanes.inner.line("hold({} + {}, {}, n);", buffers[i], Lanes::place(shape, coords).offset, yields[i]);
    }
  });
  set_buffers(c, op, buffers);
}

// Element by element: the region branches, or takes several elements at once.
void map_one_by_one(SinkContext& c, const Op& op) {
  const int64_t pack = op.attributes.integer("pack", 1), count = c.state.type(op.operands[0]).elements() / pack;
  std::vector<std::string> from;
  for (const ValueId operand : op.operands) from.push_back(c.loops.buffer(*c.out, operand));
  add_place(c, op);
  const std::vector<std::string> buffers = result_buffers(c, op);
  Writer body;
  std::vector<std::string> arguments;
  for (size_t i = 0; i < from.size(); ++i) {
    const char* held = is_mask(c.state.type(op.operands[i])) ? "held_mask" : "held";
    for (int64_t p = 0; p < pack; ++p) {
      arguments.push_back(c.state.fresh(op.regions[0].arguments[arguments.size()]));
      body.line("const auto {} = {}<1>({} + e * {} + {}, index_constant<1>{{}});", arguments.back(), held, from[i],
                pack, p);
    }
  }
  Writer* const outer = std::exchange(c.out, &body);
  const std::vector<std::string> yields = c.run_region(op.regions[0], arguments);
  c.out = outer;
  for (size_t i = 0; i < yields.size(); ++i) {
    const auto p = static_cast<int64_t>(i) % pack;
    body.line("hold({} + e * {} + {}, {}, index_constant<1>{{}});", buffers[i / static_cast<size_t>(pack)], pack, p,
              yields[i]);
  }
  c.out->block(fmt::format("for (int64_t e = 0; e < {}; ++e)", count), body);
  set_buffers(c, op, buffers);
}

void map_scalars(SinkContext& c, const Op& op) {
  std::vector<std::string> arguments;
  for (const ValueId operand : op.operands) arguments.push_back(c.state.at(operand).name);
  const std::vector<std::string> yields = c.run_region(op.regions[0], arguments);
  for (size_t i = 0; i < yields.size(); ++i) c.state.set_scalar(op.results[i], yields[i]);
}

void map(SinkContext& c, const Op& op) {
  if (c.state.type(op.operands[0]).is_scalar()) return map_scalars(c, op);
  const bool one_by_one = op.attributes.integer("pack", 1) > 1 || !is_elementwise(op.regions[0]);
  one_by_one ? map_one_by_one(c, op) : map_elementwise(c, op);
}

// ---- Two tiles into one

void put_together(SinkContext& c, const Op& op) {
  const std::string buffer = c.state.new_buffer(op.results[0]);
  for (size_t i = 0; i < 2; ++i) c.loops.prepare(*c.out, op.operands[i]);
  const int64_t first = c.state.type(op.operands[0]).elements();
  for (size_t i = 0; i < 2; ++i) {
    const auto part = static_cast<int64_t>(i);
    if (op.code == OpCode::kJoin) {
      c.loops.write_to(*c.out, op.operands[i], buffer, 2, part);
    } else {
      c.loops.write_to(*c.out, op.operands[i], buffer, 1, part * first);
    }
  }
  c.state.set_buffer(op.results[0], buffer);
}

}  // namespace

bool write_axis_op(SinkContext& c, const Op& op) {
  switch (op.code) {
    case OpCode::kReduce:
      reduce(c, op);
      return true;
    case OpCode::kScan:
      scan(c, op);
      return true;
    case OpCode::kSort:
      sort(c, op);
      return true;
    case OpCode::kHistogram:
      histogram(c, op);
      return true;
    case OpCode::kMap:
      map(c, op);
      return true;
    case OpCode::kCat:
    case OpCode::kJoin:
      put_together(c, op);
      return true;
    default:
      return false;
  }
}

}  // namespace heddle::lang::cpu
