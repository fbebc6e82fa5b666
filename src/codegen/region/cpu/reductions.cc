#include "codegen/region/cpu/reductions.h"

namespace heddle::codegen {
namespace {

std::string accumulator(const Reduction& r) {
  return fmt::format("a{}", r.local);
}

// The buffer with the results that expressions read.
uint32_t result_buffer(const Reduction& r) {
  return is_arg(r.combine) ? *r.position_buffer : *r.scratch;
}

}  // namespace

std::string combiner(Combine c) {
  return fmt::format("tile::{}_of", to_string(c));
}

void reset_columns(StitchContext& c, const Stage& stage) {
  const schedule::VarId v = stage.loops.back();
  const auto [lo, hi] = c.bounds(v);
  for (const Reduction& r : stage.reductions) {
    c.emitter.names().vars[v] = lo;
    const std::string at = c.emitter.index(r.at), count = lo == "0" ? hi : fmt::format("{} - {}", hi, factor(lo));
    c.emitter.names().vars.erase(v);
    const std::string with = is_arg(r.combine) ? "tile::none_of" : combiner(r.combine);
    c.out.line("tile::reset<{}>({} + {}, {});", with, c.buffer(result_buffer(r)), at, count);
    if (r.error_buffer) c.out.line("tile::reset<tile::sum_of>({} + {}, {});", c.buffer(*r.error_buffer), at, count);
  }
}

void combine_columns(StitchContext& c, const Reduction& r, const std::string& value, const std::string& position) {
  const std::string at = c.emitter.index(r.at), p = fmt::format("{} + {}", c.buffer(*r.scratch), at);
  if (is_arg(r.combine)) {
    c.out.line("tile::arg_columns<{}, {}, W>({}, {} + {}, {}, tile::convert<int64_t>({}), n);",
               r.combine == Combine::kArgMax, r.last, p, c.buffer(*r.position_buffer), at, value, position);
  } else if (r.error_buffer) {
    c.out.line("tile::add_compensated({}, {} + {}, {}, n);", p, c.buffer(*r.error_buffer), at, value);
  } else {
    c.out.line("tile::put({0}, {1}::apply(tile::fetch<W>({0}, n), {2}), n);", p, combiner(r.combine), value);
  }
}

bool is_float_sum(const Reduction& r) {
  return r.combine == Combine::kSum && is_float(r.dtype);
}

std::string settle_sums(const Stage& stage, std::string_view count) {
  std::string text;
  for (const Reduction& r : stage.reductions) {
    if (!is_float_sum(r)) continue;
    text += fmt::format("{}{}.settle({});", text.empty() ? "" : " ", accumulator(r),
                        r.sums_long_sums ? "tile::kLongSum" : count);
  }
  return text;
}

void declare_accumulators(StitchContext& c, const Stage& stage) {
  const std::string width = stage.vector ? "W" : "1";
  for (size_t k = 0; k < stage.reductions.size(); ++k) {
    const Reduction& r = stage.reductions[k];
    if (is_arg(r.combine)) {
      const DType position = c.body.pool[stage.pieces[0].positions[k]].dtype;
      c.out.line("tile::arg_accumulator<{}, {}, {}, {}, {}> {};", r.combine == Combine::kArgMax, r.last,
                 computed_type(r.dtype), computed_type(position), width, accumulator(r));
    } else if (stage.scan && is_float_sum(r)) {
      c.out.line("tile::running_sum<{}> {};", computed_type(r.dtype), accumulator(r));
    } else if (c.long_sums && is_float_sum(r)) {
      c.out.line("tile::long_sum<{}, {}, {}> {};", computed_type(r.dtype), width, stage.vector ? c.unroll : 1,
                 accumulator(r));
    } else {
      c.out.line("tile::accumulator<{}, {}, {}, {}> {};", combiner(r.combine), computed_type(r.dtype), width,
                 stage.vector ? c.unroll : 1, accumulator(r));
    }
  }
}

void combine_rows(StitchContext& c, const Stage& stage, const Piece& piece, size_t k, const std::string& count,
                  const std::string& turn) {
  const Reduction& r = stage.reductions[k];
  const std::string value = c.value(piece.values[k], r.dtype);
  if (is_arg(r.combine)) {
    c.out.line("{}.add({}, {}, {});", accumulator(r), value, c.emitter.vector(piece.positions[k]), count);
  } else {
    c.out.line("{}.add({}, {}, {});", accumulator(r), value, count, turn);
  }
}

void finish_rows(StitchContext& c, const Stage& stage) {
  for (const Reduction& r : stage.reductions) {
    const std::string result = fmt::format("{}.result()", accumulator(r));
    if (r.scratch) {
      c.out.line("tile::store({}, {});", c.place(result_buffer(r), r.at), result);
      continue;
    }
    const bool is_bool = r.dtype == DType::kBool && !is_arg(r.combine);
    const std::string name = fmt::format("{}{}", to_string(r.combine), r.local);
    c.out.line("const auto {} = {};", name, is_bool ? fmt::format("tile::to_mask({})", result) : result);
    c.emitter.names().locals[r.local] = {name, is_arg(r.combine) ? DType::kI64 : r.dtype, false, is_bool ? 1 : 0};
  }
}

void finish_held(StitchContext& c, const Stage& stage) {
  for (const Reduction& r : stage.reductions) {
    const std::string result = is_arg(r.combine) ? fmt::format("tile::convert<int64_t>({}.where)", accumulator(r))
                               : c.long_sums && is_float_sum(r) ? fmt::format("{}.lanes()", accumulator(r))
                                                                : fmt::format("{}.part[0]", accumulator(r));
    c.out.line("tile::put({}, {}, n);", c.place(result_buffer(r), r.at), result);
  }
}

void step_scan(StitchContext& c, const Stage& stage, const Piece& piece) {
  const Reduction& r = stage.reductions[0];
  const std::string value = c.value(piece.values[0], r.dtype), before = fmt::format("c{}", r.local);
  const std::string after = fmt::format("d{}", r.local);
  if (stage.vertical) {
    const std::string p = c.place(*r.scratch, r.at);
    c.out.line("const auto {} = tile::fetch<W>({}, n);", before, p);
    if (r.error_buffer) {
      c.out.line("tile::add_compensated({}, {}, {}, n);", p, c.place(*r.error_buffer, r.at), value);
      c.out.line("const auto {} = tile::fetch<W>({}, n);", after, p);
    } else {
      c.out.line("const auto {} = {}::apply({}, {});", after, combiner(r.combine), before, value);
      c.out.line("tile::put({}, {}, n);", p, after);
    }
  } else {
    c.out.line("const auto {} = {}.result();", before, accumulator(r));
    c.out.line("{}.add({}, tile::index_constant<1>{{}}, tile::index_constant<0>{{}});", accumulator(r), value);
    c.out.line("const auto {} = {}.result();", after, accumulator(r));
  }
  c.emitter.names().locals[r.local] = {stage.scan->exclusive ? before : after, r.dtype, stage.vertical};
}

}  // namespace heddle::codegen
