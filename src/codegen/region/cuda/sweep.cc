#include "codegen/region/cuda/sweep.h"

#include <algorithm>
#include <utility>

#include "codegen/region/cuda/cached.h"
#include "codegen/region/cuda/reduction_text.h"
#include "codegen/region/cuda/scan.h"
#include "schedule/expr/expr_walk.h"

namespace heddle::codegen {

using Over = CudaReduction::Over;

namespace {

constexpr int64_t kFewCopies = 4;  // of a thread; so many loads are in flight at once anyway

// Bytes that a thread loads from operands in one step of a row.
int64_t loaded_bytes(const SweepContext& c, const CudaStage& stage) {
  if (stage.layout.loops.empty()) return 0;
  const size_t operands = c.emitter.names().buffers.size() - c.body.scratch.size();
  const uint64_t lane = uint64_t{1} << stage.layout.loops.back();
  int64_t bytes = 0;
  schedule::ExprWalk walk(c.body.pool);
  for (const schedule::ExprId root : stage.roots()) {
    walk.run(root, [&](schedule::ExprId id) {
      const schedule::Expr& e = c.body.pool[id];
      const bool loads = e.kind == schedule::Expr::Kind::kLoad && e.id < operands;
      if (loads && (c.body.pool.vars(e.index) & lane) != 0) {
        bytes += stage.layout.vector * static_cast<int64_t>(size_of(e.dtype));
      }
      return true;
    });
  }
  return bytes;
}

// How many of `steps` steps of a row stand side by side, so that their loads are in flight together. Where rows begin
// at any address a step loads a few bytes, and takes many. Steps that are left over wait one by one.
int64_t steps_at_once(int64_t bytes, int64_t steps) {
  constexpr int64_t kUsual = 4, kMost = 16, kSmall = 8;
  if (bytes == 0 || bytes >= kSmall || steps < 2 * kUsual) return kUsual;
  int64_t best = kMost;
  for (int64_t at_once = kMost; at_once > kMost / 2; --at_once) {
    if (steps % at_once < steps % best) best = at_once;
  }
  return best;
}

}  // namespace

void CudaSweepWriter::write(const CudaStage& stage) {
  if (stage.sync) c_.sync(c_.body.team);
  if (stage.wait_async) c_.out.line("tile::sm80::wait_copies<0>();");
  for (const CudaReduction& r : stage.reductions) c_.out.comment(r.comment);
  declare_results(stage);
  c_.out.open("{");
  c_.emitter.push_scope();
  transpose(stage);
  c_.hoist(stage, c_.bound);
  if (stage.scan) {
    write_scan(c_, stage);
  } else {
    const bool alone = stage.layout.replicated;
    const int each = c_.body.cta_group > 1 ? c_.body.threads : c_.body.lanes;
    if (alone)
      c_.out.line("const int lane = {};",
                  c_.body.cta_group > 1 ? "own" : fmt::format("int(threadIdx.x) % {}", c_.body.lanes));
    write_walks(stage, alone ? each : c_.body.team);
  }
  c_.emitter.pop_scope();
  c_.out.close();
}

void CudaSweepWriter::declare_results(const CudaStage& stage) {
  std::vector<std::pair<std::string, std::string>> variables;
  const auto declare = [&](const CudaReduction& r, uint32_t local, int width, DType dtype, const std::string& name) {
    variables.emplace_back(result_type(r, width), name);
    c_.emitter.names().locals[local] = {name, dtype, width > 1, dtype == DType::kBool ? 1 : 0};
  };
  for (const CudaReduction& r : stage.reductions) {
    if (stage.scan || (r.over != Over::kTeam && r.over != Over::kThread)) continue;
    const int width = r.over == Over::kThread ? stage.layout.vector : 1;
    declare(r, r.local, width, is_arg(r.combine) ? DType::kI64 : r.dtype, result_name(r));
    if (!r.squares) continue;
    declare(r, r.squares->local, 1, r.dtype, fmt::format("squares{}", r.squares->local));
    const auto& drift = r.squares->drift;
    if (drift) declare(r, drift->local, 1, r.dtype, fmt::format("drift{}", drift->local));
  }
  declare_together(c_.out, variables);
}

// Loads that lie side by side along another variable: a tile of them, read along it, goes to shared memory.
void CudaSweepWriter::transpose(const CudaStage& stage) {
  if (stage.transposed.empty()) return;
  const VarId v = stage.layout.loops.back();
  const GridDim& across = *c_.body.blocked(v);
  for (const auto& t : stage.transposed) {
    const GridDim& along = *c_.body.blocked(t.along);
    const auto left = [&](const GridDim& d) {
      const int64_t extent = c_.body.pool.indices.extent(d.var);
      if (extent % d.block == 0) return fmt::format("{}", d.block);
      return fmt::format("int(tile::smaller({} - b{}, {}))", extent, d.var, d.block);
    };
    c_.out.line("tile::transpose_tile<{}, {}, {}>({}, {} + {}, {}, {}, {});", along.block, across.block, c_.body.team,
                c_.emitter.names().buffers[t.scratch], c_.emitter.names().buffers[t.from], c_.emitter.index(t.at),
                t.stride, left(along), left(across));
  }
  c_.sync(c_.body.team);
}

void CudaSweepWriter::write_walks(const CudaStage& stage, int team) {
  const ThreadLayout& s = stage.layout;
  const int64_t outer = c_.body.outer_steps(s);
  const Point p = point_of(c_.body, s, team);
  for (const CudaReduction& r : stage.reductions) {
    if (r.over == Over::kTeam) c_.out.line("{} a{};", accumulator_type(c_.body.pool, r, s.vector), r.local);
  }
  if (outer > 1) {
    if (stage.unrolled) c_.out.raw("#pragma unroll");
    c_.out.open(fmt::format("for (int {0} = 0; {0} < {1}; ++{0}) {{", p.outer_step, outer));
    c_.emitter.push_scope();
  }
  for (const CudaReduction& r : stage.reductions) {
    if (r.over == Over::kTeam || r.over == Over::kCarried) continue;
    c_.out.line("{} a{};", accumulator_type(c_.body.pool, r, s.vector), r.local);
  }
  c_.out.declare(c_.index_type(), "q0", p.outer);
  if (!p.outer_valid.empty()) c_.out.open(fmt::format("if ({}) {{", p.outer_valid));
  c_.emitter.push_scope();
  write_inner(stage, p);
  c_.emitter.pop_scope();
  if (!p.outer_valid.empty()) c_.out.close();
  for (const CudaReduction& r : stage.reductions) {
    if (r.over == Over::kGroup) results_.finish_group(stage, r, p);
    if (r.over == Over::kColumn) results_.finish_column(stage, r, p);
    if (r.over == Over::kThread) {
      const std::string columns_of = fmt::format("a{}.columns()", r.local);
      c_.out.line("{} = {};", result_name(r),
                  r.dtype == DType::kBool ? fmt::format("tile::to_mask({})", columns_of) : columns_of);
    }
  }
  if (outer > 1) {
    c_.emitter.pop_scope();
    c_.out.close();
  }
  if (between) std::exchange(between, nullptr)();
  for (const CudaReduction& r : stage.reductions) {
    if (r.over == Over::kTeam) results_.finish_team(stage, r);
  }
}

void CudaSweepWriter::write_inner(const CudaStage& stage, const Point& p) {
  const ThreadLayout& s = stage.layout;
  const int64_t outer = c_.body.outer_steps(s), inner = c_.body.inner_steps(s);
  c_.decode(s, p.outer_first, p.outer_last, p.outer_position);
  const std::string outer_bounds = c_.bounds_of(s, p.outer_first, p.outer_last);
  if (!outer_bounds.empty()) c_.out.open(fmt::format("if ({}) {{", outer_bounds));
  uint64_t known = c_.bound;
  for (size_t k = p.outer_first; k < p.outer_last; ++k) known |= uint64_t{1} << s.loops[k];
  if (inner == 1 && outer == 1) c_.out.declare("int", "k", "0");
  // Lanes may be bound outside: what they share is hoisted, as vectors where it varies with them.
  if (s.by_columns) c_.begin_lanes(s);
  c_.emitter.push_scope();
  c_.hoist(stage, known);
  const int64_t full = c_.body.full_steps(s);
  if (outer == 1 && (stage.async_copy || inner > kFewCopies) && copied_operand(c_, stage) != nullptr) {
    write_copies(stage, p);
  } else if (inner > 1 && !p.inner_valid.empty() && full > 0) {
    // What all threads have goes without a question, so that the loads of several steps are in flight together.
    write_steps(stage, p, 0, full, Pass::kAll);
    write_steps(stage, p, full, inner, Pass::kAll);
  } else {
    write_steps(stage, p, 0, inner, Pass::kAll);
  }
  c_.emitter.pop_scope();
  c_.end_lanes();
  if (!outer_bounds.empty()) c_.out.close();
  c_.forget(s, p.outer_first, p.outer_last);
}

// All copies are under way before the first of them is waited for.
void CudaSweepWriter::write_copies(const CudaStage& stage, const Point& p) {
  const int64_t most = stage.async_copy ? 1 : 4;  // groups
  const int64_t inner = c_.body.inner_steps(stage.layout), each = (inner + most - 1) / most;
  const int64_t groups = (inner + each - 1) / each, full = c_.body.full_steps(stage.layout);
  for (const Pass pass : {Pass::kCopy, Pass::kUse}) {
    if (pass == Pass::kUse && stage.async_copy) return;
    for (int64_t g = 0; g < groups; ++g) {
      const int64_t from = g * each, to = std::min(inner, from + each);
      if (pass == Pass::kUse) c_.out.line("tile::sm80::wait_copies<{}>();", groups - 1 - g);
      if (!p.inner_valid.empty() && full > from && full < to) {
        write_steps(stage, p, from, full, pass);
        write_steps(stage, p, full, to, pass);
      } else {
        write_steps(stage, p, from, to, pass);
      }
      if (pass == Pass::kCopy) c_.out.line("tile::sm80::commit_copies();");
    }
  }
}

// The steps [from, to) of the inner walk.
void CudaSweepWriter::write_steps(const CudaStage& stage, const Point& p, int64_t from, int64_t to, Pass pass) {
  const ThreadLayout& s = stage.layout;
  const int64_t outer = c_.body.outer_steps(s), inner = c_.body.inner_steps(s);
  const bool guarded = !p.inner_valid.empty() && to > c_.body.full_steps(s);
  if (to - from > 1) {
    if (stage.unrolled) {
      c_.out.raw("#pragma unroll");
    } else if (inner >= 8 && s.by_columns) {
      c_.out.raw("#pragma unroll 8");
    } else if (inner >= 4) {
      const int64_t bytes = pass == Pass::kAll && !s.by_columns ? loaded_bytes(c_, stage) : 0;
      c_.out.line("#pragma unroll {}", steps_at_once(bytes, to - from));
    }
    c_.out.open(fmt::format("for (int {0} = {1}; {0} < {2}; ++{0}) {{", p.inner_step, from, to));
  } else if (inner > 1) {
    c_.out.open("{");
    c_.out.line("constexpr int {} = {};", p.inner_step, from);
  }
  if (inner > 1 && outer > 1) c_.out.declare("int", "k", fmt::format("k0 * {} + k1", inner));
  c_.out.declare(c_.index_type(), "q1", p.inner);
  if (guarded) c_.out.open(fmt::format("if ({}) {{", p.inner_valid));
  c_.emitter.push_scope();
  c_.decode(s, p.inner_first, p.inner_last, guarded ? "q1" : p.inner);
  const std::string inner_bounds = c_.bounds_of(s, p.inner_first, p.inner_last);
  const VarId lane = s.loops.empty() ? 0 : s.loops.back();
  const GridDim* d = s.loops.empty() ? nullptr : c_.body.blocked(lane);
  const bool cut = d != nullptr && c_.body.pool.indices.extent(lane) % s.vector != 0;
  if (cut) {
    // The last vector of all is done element by element.
    c_.out.open(fmt::format("if (i{} + {} <= {}) {{", lane, s.vector, c_.body.pool.indices.extent(lane)));
  } else if (!inner_bounds.empty()) {
    c_.out.open(fmt::format("if ({}) {{", inner_bounds));
  }
  c_.begin_lanes(s);
  c_.emitter.push_scope();
  write_body(stage, pass);
  c_.emitter.pop_scope();
  c_.end_lanes();
  if (cut) {
    c_.out.middle("} else {");
    write_tail(stage);
  }
  if (cut || !inner_bounds.empty()) c_.out.close();
  c_.forget(s, p.inner_first, p.inner_last);
  c_.emitter.pop_scope();
  if (guarded) c_.out.close();
  if (inner > 1) c_.out.close();
}

void CudaSweepWriter::write_body(const CudaStage& stage, Pass pass) {
  if (pass == Pass::kCopy) return write_copy(c_, stage);
  if (pass == Pass::kUse) use_copy(c_, stage);
  load_cached(c_, stage);
  write_cached(c_, stage, pass == Pass::kUse);
  for (const CudaReduction& r : stage.reductions) {
    const std::string value = c_.number(r.value, r.dtype);
    const std::string to = r.over == Over::kCarried ? fmt::format("a{}[k]", r.local) : fmt::format("a{}", r.local);
    if (is_arg(r.combine)) {
      c_.out.line("{}.add({}, {});", to, value, c_.emitter.vector(r.position));
    } else {
      c_.out.line("{}.add({});", to, value);
    }
  }
  c_.write_stores(stage);
  if (pass == Pass::kUse) drop_copy(c_, stage);
}

void CudaSweepWriter::write_tail(const CudaStage& stage) {
  const VarId lane = stage.layout.loops.back();
  const std::string name = fmt::format("j{}", lane);
  c_.out.open(fmt::format("for ({0} {1} = i{2}; {1} < {3}; ++{1}) {{", c_.index_type(), name, lane,
                          c_.body.pool.indices.extent(lane)));
  c_.emitter.names().vars[lane] = name;
  c_.emitter.set_lanes(std::nullopt);
  c_.emitter.push_scope();
  c_.write_stores(stage);
  c_.emitter.pop_scope();
  c_.emitter.names().vars[lane] = fmt::format("i{}", lane);
  c_.out.close();
}

void CudaSweepWriter::write_after(const CudaStage& stage) {
  results_.finish_carried(stage.layout);
  c_.out.open("{");
  c_.out.line("const int lane = threadIdx.x;");
  c_.emitter.push_scope();
  const bool live = std::exchange(c_.has_live, false);
  write_walks(stage, c_.body.threads);
  c_.has_live = live;
  c_.emitter.pop_scope();
  c_.out.close();
}

}  // namespace heddle::codegen
