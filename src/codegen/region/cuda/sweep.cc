#include "codegen/region/cuda/sweep.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace heddle::codegen {

using schedule::CachedValue;
using schedule::Combine;
using schedule::CudaReduction;
using schedule::CudaStage;
using schedule::CudaStitchDesc;
using schedule::ExprId;
using schedule::GridDim;
using schedule::Store;
using schedule::ThreadLayout;
using schedule::VarId;
using Over = CudaReduction::Over;

namespace {

constexpr int64_t kFewCopies = 4;  // of a thread; so many loads are in flight at once anyway

}  // namespace

CudaSweepWriter::CudaSweepWriter(const CudaStitchDesc& body, Writer& out)
    : memory(schedule::shared_memory(body)), body_(body), out_(out), emitter_(body.pool, Names{}, out) {
  Style style;
  style.cuda = true;
  style.index = index_type();
  for (const GridDim& d : body.grid) {
    if (d.block > 1) style.multiples[d.start] = d.block;
  }
  emitter_.set_style(std::move(style));
}

const GridDim* CudaSweepWriter::blocked(VarId v) const {
  for (const GridDim& d : body_.grid) {
    if (d.var == v && d.block > 1) return &d;
  }
  return nullptr;
}

std::string CudaSweepWriter::value_type(const CudaReduction& r) const {
  return std::string(computed_type(r.dtype));
}

std::string CudaSweepWriter::combiner(const CudaReduction& r) const {
  if (r.squares) return "tile::moments_of";
  return is_arg(r.combine) ? "tile::best_of" : fmt::format("tile::{}_of", to_string(r.combine));
}

std::string CudaSweepWriter::accumulator_type(const CudaReduction& r, int width) const {
  if (is_arg(r.combine)) {
    return fmt::format("tile::arg_accumulator<{}, {}, {}, {}, {}>", r.combine == Combine::kArgMax, r.last,
                       value_type(r), computed_type(body_.pool[r.position].dtype), width);
  }
  if (r.squares) return fmt::format("tile::moments_accumulator<{}, {}>", value_type(r), width);
  if (r.compensated) return fmt::format("tile::compensated_sum<{}, {}>", value_type(r), width);
  return fmt::format("tile::accumulator<{}, {}, {}>", combiner(r), value_type(r), width);
}

std::string CudaSweepWriter::result_name(const CudaReduction& r) {
  return fmt::format("{}{}", to_string(r.combine), r.local);
}

std::string CudaSweepWriter::result_type(const CudaReduction& r, int width) const {
  if (is_arg(r.combine)) return fmt::format("tile::vec<int64_t, {}>", width);
  if (r.dtype == DType::kBool) return fmt::format("tile::mask<1, {}>", width);
  return fmt::format("tile::vec<{}, {}>", value_type(r), width);
}

// The last argument of what a team combines: where it hands over between warps.
std::string CudaSweepWriter::slot(size_t number) const {
  if (body_.team <= 32) return "";
  return ", " + shared(memory.slots + static_cast<int64_t>(number) * schedule::SharedMemory::kSlotBytes);
}

void CudaSweepWriter::sync(int team) {
  if (team > 1) out_.line("tile::team_sync<{}>();", team);
  if (team == body_.team) columns_dirty_ = false;
}

// ---- Registers across sweeps

void CudaSweepWriter::declare_carried() {
  for (const CudaStage& stage : body_.stages) {
    for (const CudaReduction& r : stage.reductions) {
      if (r.over != Over::kCarried) continue;
      out_.line("{} a{}[{}];  {}", accumulator_type(r, stage.layout.vector), r.local, steps(stage.layout),
                comment_of(r.comment));
    }
  }
}

// Variables by type and name: neighbours of one type in one line.
void CudaSweepWriter::declare_together(const std::vector<std::pair<std::string, std::string>>& variables) {
  std::string line;
  for (size_t i = 0; i < variables.size(); ++i) {
    const auto& [type, name] = variables[i];
    line += i > 0 && variables[i - 1].first == type ? ", " + name : type + " " + name;
    if (i + 1 < variables.size() && variables[i + 1].first == type) continue;
    out_.line("{};", line);
    line.clear();
  }
}

void CudaSweepWriter::declare_keeps(const std::vector<CudaStage>& stages) {
  std::vector<std::pair<std::string, std::string>> variables;
  for (const CudaStage& stage : stages) {
    for (const CachedValue& k : stage.cached) {
      const int width = stage.layout.vector;
      const int64_t count = steps(stage.layout);
      const std::string name = fmt::format("h{}", k.local);
      const bool is_bool = k.dtype == DType::kBool;
      const std::string at = count > 1 && (!k.shared || is_bool) ? name + "[k]" : name;
      emitter_.names().locals[k.local] = {at, k.dtype, width > 1, is_bool ? 1 : 0};
      if (k.shared && !is_bool) continue;
      variables.emplace_back(is_bool ? fmt::format("tile::mask<1, {}>", width)
                                     : fmt::format("tile::vec<{}, {}>", computed_type(k.dtype), width),
                             count > 1 ? fmt::format("{}[{}]", name, count) : name);
    }
  }
  declare_together(variables);
}

// What a thread keeps of its present step.
std::string CudaSweepWriter::kept(const CachedValue& keep) const {
  return emitter_.names().locals.at(keep.local).text;
}

void CudaSweepWriter::declare_ahead() {
  for (const CudaStage& stage : body_.ahead) {
    const int width = stage.layout.vector;
    const int64_t each = steps(stage.layout);
    for (const CachedValue& k : stage.cached) {
      const std::string& buffer = emitter_.names().buffers[body_.pool[k.value].id];
      out_.line("decltype(tile::load_stored<{}, {}>({})) n{}[{}];", width, 1, buffer, k.local, each * body_.turns);
      const std::string at = body_.turns > 1 ? fmt::format("turn * {} + k", each) : "k";
      emitter_.names().locals[k.local] = {fmt::format("tile::decoded(n{}[{}])", k.local, at), k.dtype, width > 1};
    }
  }
}

// ---- Places

void CudaSweepWriter::begin_lanes(const ThreadLayout& s) {
  if (s.vector > 1) {
    emitter_.set_lanes(Lanes{s.loops.back(), std::to_string(s.vector), "0", s.vector});
  } else {
    emitter_.set_lanes(std::nullopt);
  }
}
void CudaSweepWriter::end_lanes() {
  emitter_.set_lanes(std::nullopt);
}

// Declares the loops [first, last) from their joint position, the last fastest.
void CudaSweepWriter::decode(const ThreadLayout& s, size_t first, size_t last, const std::string& position) {
  int64_t below = 1;
  std::vector<std::pair<std::string, std::string>> variables;
  for (size_t k = last; k-- > first;) {
    const VarId v = s.loops[k];
    const bool lane = k + 1 == s.loops.size();
    const int64_t extent = body_.extent(v), count = lane ? (extent + s.vector - 1) / s.vector : extent;
    const std::string quotient = below > 1 ? fmt::format("{} / {}", factor(position), below) : position;
    std::string text = k > first ? fmt::format("{} % {}", factor(quotient), count) : quotient;
    if (count == 1) text = "0";
    if (lane) text = product(text, s.vector);
    if (blocked(v) != nullptr) text = sum(fmt::format("b{}", v), text);
    const std::string name = fmt::format("i{}", v);
    // Bounds of blocked variables go by the name.
    emitter_.names().vars[v] = text == "0" && blocked(v) == nullptr ? text : name;
    variables.emplace_back(name, text);
    below *= count;
  }
  for (auto v = variables.rbegin(); v != variables.rend(); ++v) out_.declare(index_type(), v->first, v->second);
}
void CudaSweepWriter::forget(const ThreadLayout& s, size_t first, size_t last) {
  for (size_t k = first; k < last; ++k) emitter_.names().vars.erase(s.loops[k]);
}

// Blocks at the end of a variable may be cut.
std::string CudaSweepWriter::bounds_of(const ThreadLayout& s, size_t first, size_t last) const {
  std::string text;
  for (size_t k = first; k < last; ++k) {
    const VarId v = s.loops[k];
    const GridDim* d = blocked(v);
    if (d == nullptr || body_.pool.indices.extent(v) % d->block == 0) continue;
    text += fmt::format("{}i{} < {}", text.empty() ? "" : " && ", v, body_.pool.indices.extent(v));
  }
  return text;
}

void CudaSweepWriter::hoist(const CudaStage& stage, uint64_t known) {
  for (const CudaReduction& r : stage.reductions) emitter_.hoist(r.value, known);
  for (const CachedValue& k : stage.cached) {
    if (!k.stored) emitter_.hoist(k.value, known);
  }
  if (stage.scan) return;  // what is stored is what its steps make
  for (const Store& s : stage.stores) emitter_.hoist(s.value, known);
}

std::string CudaSweepWriter::number(ExprId e, DType dtype) {
  const std::string text = emitter_.vector(e);
  return dtype == DType::kBool ? fmt::format("tile::from_mask<uint8_t>({})", text) : text;
}

// ---- Sweeps

void CudaSweepWriter::write(const CudaStage& stage) {
  if (stage.sync) sync(body_.team);
  if (stage.wait_async) out_.line("tile::sm80::wait_copies<0>();");
  for (const CudaReduction& r : stage.reductions) out_.comment(r.comment);
  declare_results(stage);
  out_.open("{");
  emitter_.push_scope();
  transpose(stage);
  hoist(stage, bound);
  if (stage.scan) {
    write_scan(stage);
  } else {
    const bool alone = stage.layout.replicated;
    const int each = body_.cta_group > 1 ? body_.threads : 32;
    if (alone) out_.line("const int lane = {};", body_.cta_group > 1 ? "own" : "int(threadIdx.x) % 32");
    write_walks(stage, alone ? each : body_.team);
  }
  emitter_.pop_scope();
  out_.close();
}

void CudaSweepWriter::declare_results(const CudaStage& stage) {
  std::vector<std::pair<std::string, std::string>> variables;
  const auto declare = [&](const CudaReduction& r, uint32_t local, int width, DType dtype, const std::string& name) {
    variables.emplace_back(result_type(r, width), name);
    emitter_.names().locals[local] = {name, dtype, width > 1, dtype == DType::kBool ? 1 : 0};
  };
  for (const CudaReduction& r : stage.reductions) {
    if (stage.scan || (r.over != Over::kTeam && r.over != Over::kThread)) continue;
    const int width = r.over == Over::kThread ? stage.layout.vector : 1;
    declare(r, r.local, width, is_arg(r.combine) ? DType::kI64 : r.dtype, result_name(r));
    if (r.squares) declare(r, r.squares->local, 1, r.dtype, fmt::format("squares{}", r.squares->local));
  }
  declare_together(variables);
}

// Loads that lie side by side along another variable: a tile of them, read along it, goes to shared memory.
void CudaSweepWriter::transpose(const CudaStage& stage) {
  if (stage.transposed.empty()) return;
  const VarId v = stage.layout.loops.back();
  const GridDim& across = *blocked(v);
  for (const auto& t : stage.transposed) {
    const GridDim& along = *blocked(t.along);
    const auto left = [&](const GridDim& d) {
      const int64_t extent = body_.pool.indices.extent(d.var);
      if (extent % d.block == 0) return fmt::format("{}", d.block);
      return fmt::format("int(tile::smaller({} - b{}, {}))", extent, d.var, d.block);
    };
    out_.line("tile::transpose_tile<{}, {}, {}>({}, {} + {}, {}, {}, {});", along.block, across.block, body_.team,
              emitter_.names().buffers[t.scratch], emitter_.names().buffers[t.from], emitter_.index(t.at), t.stride,
              left(along), left(across));
  }
  sync(body_.team);
}

void CudaSweepWriter::write_walks(const CudaStage& stage, int team) {
  const ThreadLayout& s = stage.layout;
  const int64_t rows = body_.rows(s), columns = body_.columns(s), outer = body_.outer_steps(s),
                inner = body_.inner_steps(s);
  const auto at = [](const char* walk, int64_t count, int64_t by, const std::string& rest) {
    return sum(count == 1 ? "0" : product(walk, by), rest);
  };
  const auto part = [&](const char* op, int64_t by) {
    if (by == 1) return std::string(op[0] == '/' ? "lane" : "0");
    if (by >= team) return std::string(op[0] == '/' ? "0" : "lane");
    return fmt::format("lane {} {}", op, by);
  };
  Point p;
  p.team = team;
  // What is kept is counted by k, the step of both walks together.
  if (inner == 1) p.outer_step = "k";
  if (outer == 1) p.inner_step = "k";
  const size_t all = s.loops.size();
  if (!s.by_columns) {
    const int64_t together = s.active / s.group;
    p.outer = at(p.outer_step, outer, together, part("/", s.group));
    p.inner = at(p.inner_step, inner, s.group, part("%", s.group));
    if (outer * together != rows) p.outer_valid = fmt::format("q0 < {}", rows);
    if (inner * s.group != columns) p.inner_valid = fmt::format("q1 < {}", columns);
    p.outer_last = p.inner_first = s.outer_loops, p.inner_last = all;
  } else if (columns <= s.active) {
    const int64_t together = s.active / columns;
    p.outer = part("%", columns);
    p.inner = at(p.inner_step, inner, together, part("/", columns));
    if (s.active != team) p.outer_valid = fmt::format("lane < {}", s.active);
    if (inner * together != rows) p.inner_valid = fmt::format("q1 < {}", rows);
    p.outer_first = s.outer_loops, p.outer_last = all, p.inner_last = s.outer_loops;
  } else {
    p.outer = at(p.outer_step, outer, s.active, "lane");
    p.inner = inner == 1 ? "0" : p.inner_step;
    if (outer * s.active != columns) p.outer_valid = fmt::format("q0 < {}", columns);
    p.outer_first = s.outer_loops, p.outer_last = all, p.inner_last = s.outer_loops;
  }
  for (const CudaReduction& r : stage.reductions) {
    if (r.over == Over::kTeam) out_.line("{} a{};", accumulator_type(r, s.vector), r.local);
  }
  if (outer > 1) {
    if (stage.unrolled) out_.raw("#pragma unroll");
    out_.open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0}) {{", p.outer_step, outer));
    emitter_.push_scope();
  }
  for (const CudaReduction& r : stage.reductions) {
    if (r.over == Over::kTeam || r.over == Over::kCarried) continue;
    out_.line("{} a{};", accumulator_type(r, s.vector), r.local);
  }
  if (p.outer_valid.empty() && factor(p.outer) == p.outer) p.outer_position = p.outer;
  out_.declare(index_type(), "q0", p.outer);
  if (!p.outer_valid.empty()) out_.open(fmt::format("if ({}) {{", p.outer_valid));
  emitter_.push_scope();
  write_inner(stage, p);
  emitter_.pop_scope();
  if (!p.outer_valid.empty()) out_.close();
  for (const CudaReduction& r : stage.reductions) {
    if (r.over == Over::kGroup) finish_group(stage, r, p);
    if (r.over == Over::kColumn) finish_column(stage, r, p);
    if (r.over == Over::kThread) {
      const std::string columns_of = fmt::format("a{}.columns()", r.local);
      out_.line("{} = {};", result_name(r),
                r.dtype == DType::kBool ? fmt::format("tile::to_mask({})", columns_of) : columns_of);
    }
  }
  if (outer > 1) {
    emitter_.pop_scope();
    out_.close();
  }
  if (between) std::exchange(between, nullptr)();
  for (const CudaReduction& r : stage.reductions) {
    if (r.over == Over::kTeam) finish_team(stage, r);
  }
}

void CudaSweepWriter::write_inner(const CudaStage& stage, const Point& p) {
  const ThreadLayout& s = stage.layout;
  const int64_t outer = body_.outer_steps(s), inner = body_.inner_steps(s);
  decode(s, p.outer_first, p.outer_last, p.outer_position);
  const std::string outer_bounds = bounds_of(s, p.outer_first, p.outer_last);
  if (!outer_bounds.empty()) out_.open(fmt::format("if ({}) {{", outer_bounds));
  uint64_t known = bound;
  for (size_t k = p.outer_first; k < p.outer_last; ++k) known |= uint64_t{1} << s.loops[k];
  if (inner == 1 && outer == 1) out_.declare("int", "k", "0");
  // Lanes may be bound outside: what they share is hoisted, as vectors where it varies with them.
  if (s.by_columns) begin_lanes(s);
  emitter_.push_scope();
  hoist(stage, known);
  const int64_t full = body_.full_steps(s);
  if (outer == 1 && (stage.async_copy || inner > kFewCopies) && copied(stage) != nullptr) {
    write_copies(stage, p);
  } else if (inner > 1 && !p.inner_valid.empty() && full > 0) {
    // What all threads have goes without a question, so that the loads of several steps are in flight together.
    write_steps(stage, p, 0, full, Pass::kAll);
    write_steps(stage, p, full, inner, Pass::kAll);
  } else {
    write_steps(stage, p, 0, inner, Pass::kAll);
  }
  emitter_.pop_scope();
  end_lanes();
  if (!outer_bounds.empty()) out_.close();
  forget(s, p.outer_first, p.outer_last);
}

// The steps [from, to) of the inner walk.
void CudaSweepWriter::write_steps(const CudaStage& stage, const Point& p, int64_t from, int64_t to, Pass pass) {
  const ThreadLayout& s = stage.layout;
  const int64_t outer = body_.outer_steps(s), inner = body_.inner_steps(s);
  const bool guarded = !p.inner_valid.empty() && to > body_.full_steps(s);
  if (to - from > 1) {
    if (stage.unrolled) {
      out_.raw("#pragma unroll");
    } else if (inner >= 8 && s.by_columns) {
      out_.raw("#pragma unroll 8");
    } else if (inner >= 4) {
      out_.raw("#pragma unroll 4");
    }
    out_.open(fmt::format("for (int {0} = {1}; {0} < {2}; ++{0}) {{", p.inner_step, from, to));
  } else if (inner > 1) {
    out_.open("{");
    out_.line("constexpr int {} = {};", p.inner_step, from);
  }
  if (inner > 1 && outer > 1) out_.declare("int", "k", fmt::format("k0 * {} + k1", inner));
  out_.declare(index_type(), "q1", p.inner);
  if (guarded) out_.open(fmt::format("if ({}) {{", p.inner_valid));
  emitter_.push_scope();
  decode(s, p.inner_first, p.inner_last, guarded ? "q1" : p.inner);
  const std::string inner_bounds = bounds_of(s, p.inner_first, p.inner_last);
  const VarId lane = s.loops.empty() ? 0 : s.loops.back();
  const GridDim* d = s.loops.empty() ? nullptr : blocked(lane);
  const bool cut = d != nullptr && body_.pool.indices.extent(lane) % s.vector != 0;
  if (cut) {
    // The last vector of all is done element by element.
    out_.open(fmt::format("if (i{} + {} <= {}) {{", lane, s.vector, body_.pool.indices.extent(lane)));
  } else if (!inner_bounds.empty()) {
    out_.open(fmt::format("if ({}) {{", inner_bounds));
  }
  begin_lanes(s);
  emitter_.push_scope();
  write_body(stage, pass);
  emitter_.pop_scope();
  end_lanes();
  if (cut) {
    out_.middle("} else {");
    write_tail(stage);
  }
  if (cut || !inner_bounds.empty()) out_.close();
  forget(s, p.inner_first, p.inner_last);
  emitter_.pop_scope();
  if (guarded) out_.close();
  if (inner > 1) out_.close();
}

void CudaSweepWriter::write_body(const CudaStage& stage, Pass pass) {
  const ThreadLayout& s = stage.layout;
  if (pass != Pass::kAll) {
    const CachedValue& k = stage.cached[0];
    if (pass == Pass::kCopy) {
      const auto bytes = s.vector * static_cast<int64_t>(size_of(body_.pool[k.value].dtype));
      const std::string to = fmt::format("tile::cuda::shared_address({})", place_of(stage, k));
      if (bytes == 16 && body_.evict_first.count(body_.pool[k.value].id) != 0) {
        out_.line("tile::sm80::copy_async_evict_first({}, {});", to, emitter_.place(k.value));
      } else if (bytes == 16 && stage.async_copy) {
        out_.line("tile::sm80::copy_async_l1_resident({}, {});", to, emitter_.place(k.value));
      } else {
        out_.line("tile::sm80::copy_async<{0}>({1}, {2}, {0});", bytes, to, emitter_.place(k.value));
      }
      return;
    }
    out_.line("const auto h{0} = tile::load<{1}, {1}>({2});", k.local, s.vector, place_of(stage, k));
    emitter_.names().cached[k.value] = {fmt::format("h{}", k.local), k.dtype, true};
  }
  name_keeps(stage);
  for (const CachedValue& k : stage.cached) {
    if (k.stored) {
      const std::string at = body_.turns > 1 ? fmt::format("turn * {} + k", steps(s)) : "k";
      out_.line("n{}[{}] = {};", k.local, at, emitter_.stored(k.value));
      continue;
    }
    if (pass == Pass::kUse) break;
    if (k.shared) {
      out_.line("tile::store<{}>({}, {});", s.vector, place_of(stage, k), emitter_.vector(k.value));
    } else if (k.dtype == DType::kBool) {
      out_.line("{} = tile::convert_mask<1>({});", kept(k), emitter_.vector(k.value));
    } else {
      emitter_.assign(kept(k), k.value);
    }
  }
  for (const CudaReduction& r : stage.reductions) {
    const std::string value = number(r.value, r.dtype);
    const std::string to = r.over == Over::kCarried ? fmt::format("a{}[k]", r.local) : fmt::format("a{}", r.local);
    if (is_arg(r.combine)) {
      out_.line("{}.add({}, {});", to, value, emitter_.vector(r.position));
    } else {
      out_.line("{}.add({});", to, value);
    }
  }
  write_stores(stage);
  if (pass == Pass::kUse) emitter_.names().cached.erase(stage.cached[0].value);
}

void CudaSweepWriter::write_stores(const CudaStage& stage) {
  const size_t operands = emitter_.names().buffers.size() - body_.scratch.size();
  const bool rounds = std::all_of(stage.stores.begin(), stage.stores.end(), [&](const Store& s) {
    return s.buffer < operands && (s.dtype == DType::kF16 || s.dtype == DType::kBF16);
  });
  for (const Store& s : stage.stores) {
    const bool guarded = has_live && s.buffer < operands;
    if (rounds) {
      ExprId value = s.value;
      while (body_.pool[value].kind == schedule::Expr::Kind::kOp && body_.pool[value].op == ir::Op::kCast) {
        value = body_.pool[value].args[0];
      }
      emitter_.set_rounded(value);
    }
    emitter_.value(s.value);
    if (guarded) {
      out_.open("if (live) {");
      emitter_.push_scope();
    }
    emitter_.store(emitter_.names().buffers[s.buffer], s.dtype, s.at, s.value);
    if (guarded) {
      emitter_.pop_scope();
      out_.close();
    }
  }
  emitter_.set_rounded(std::nullopt);
}

void CudaSweepWriter::write_tail(const CudaStage& stage) {
  const VarId lane = stage.layout.loops.back();
  const std::string name = fmt::format("j{}", lane);
  out_.open(fmt::format("for ({0} {1} = i{2}; {1} < {3}; ++{1}) {{", index_type(), name, lane,
                        body_.pool.indices.extent(lane)));
  emitter_.names().vars[lane] = name;
  emitter_.set_lanes(std::nullopt);
  emitter_.push_scope();
  write_stores(stage);
  emitter_.pop_scope();
  emitter_.names().vars[lane] = fmt::format("i{}", lane);
  out_.close();
}

}  // namespace heddle::codegen
