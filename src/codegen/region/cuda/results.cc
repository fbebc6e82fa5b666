#include <algorithm>
#include <utility>

#include "base/check.h"
#include "codegen/region/cuda/sweep.h"

namespace heddle::codegen {

using schedule::CudaReduction;
using schedule::CudaStage;
using schedule::ThreadLayout;
using Over = CudaReduction::Over;

// ---- Results

void CudaSweepWriter::finish_team(const CudaStage& stage, const CudaReduction& r) {
  const std::string from = fmt::format("a{}.row()", r.local);
  std::string reduced;
  if (stage.layout.replicated) {
    HEDDLE_CHECK(body_.cta_group == 1, "a cta_group's result is that of all its blocks");
    reduced = fmt::format("tile::team_reduce<{}, 32>({})", combiner(r), from);
  } else if (body_.cta_group > 1) {
    begin_cta_group();
    reduced = fmt::format(
        "tile::cta_group_reduce<{}, {}, {}>({}{}, {})", combiner(r), body_.threads, body_.cta_group, from,
        ", " + shared(memory.slots + static_cast<int64_t>(next_slot_++) * schedule::SharedMemory::kSlotBytes),
        next_cta_group_barrier());
  } else {
    reduced = fmt::format("tile::team_reduce<{}, {}>({}{})", combiner(r), body_.team, from, slot(next_slot_++));
  }
  if (r.squares) {
    out_.line("tile::split_moments({}, {}, squares{});", reduced, result_name(r), r.squares->local);
  } else if (is_arg(r.combine)) {
    out_.line("{}.v = int64_t({}.where);", result_name(r), reduced);
  } else if (r.dtype == DType::kBool) {
    out_.line("{} = tile::to_mask(tile::vec<uint8_t, 1>{{{}}});", result_name(r), reduced);
  } else {
    out_.line("{}.v = {};", result_name(r), reduced);
  }
}

// The first exchange waits until all blocks of the cluster have begun.
std::string CudaSweepWriter::next_cta_group_barrier() {
  const int64_t at = memory.barriers + schedule::SharedMemory::kBarrierBytes * next_cta_group_barrier_++;
  return fmt::format("reinterpret_cast<tile::cta_group_barrier*>({})", shared(at));
}

void CudaSweepWriter::begin_cta_group() {
  if (!cta_group_began_) out_.line("tile::sm90::cluster_wait();");
  cta_group_began_ = true;
}

void CudaSweepWriter::finish_group(const CudaStage& stage, const CudaReduction& r, const Point& p) {
  const ThreadLayout& s = stage.layout;
  out_.line("const auto c{} = tile::lanes_reduce<{}, {}>(a{}.row());", r.local, combiner(r), std::min(s.group, 32),
            r.local);
  std::string condition = s.group > 1 ? fmt::format("lane % {} == 0", s.group) : "";
  if (!p.outer_valid.empty()) condition += (condition.empty() ? "" : " && ") + p.outer_valid;
  out_.open(condition.empty() ? std::string("{") : fmt::format("if ({}) {{", condition));
  decode(s, p.outer_first, p.outer_last, p.outer_position);
  const std::string bounds = bounds_of(s, p.outer_first, p.outer_last);
  out_.line("{}{}[{}] = c{}{};", bounds.empty() ? "" : fmt::format("if ({}) ", bounds),
            emitter_.names().buffers[*r.scratch], emitter_.index(r.at), r.local, is_arg(r.combine) ? ".where" : "");
  forget(s, p.outer_first, p.outer_last);
  out_.close();
}

void CudaSweepWriter::finish_column(const CudaStage& stage, const CudaReduction& r, const Point& p) {
  const ThreadLayout& s = stage.layout;
  const int64_t columns = body_.columns(s), elements = columns * s.vector;
  const int team = body_.cta_group > 1 ? body_.threads : p.team;
  const int64_t active = body_.cta_group > 1 ? team : s.active, groups = columns <= active ? active / columns : 1;
  const char* lane = body_.cta_group > 1 ? "own" : "lane";
  HEDDLE_CHECK(body_.cta_group == 1 || team % columns == 0);
  // A thread for each element of the result, where a block has enough.
  const bool apart = team > 32 && groups > 1 && elements <= team;
  std::string from = fmt::format("a{}", r.local);
  if (groups > 1) {
    if (columns_dirty_) sync(body_.team);
    columns_dirty_ = true;
  }
  if (apart) {
    from = fmt::format("c{}", r.local);
    out_.line("auto {} = tile::columns_apart<{}, {}, {}, {}>(a{}{}, {}, {});", from, combiner(r), team, columns, groups,
              r.local, r.squares ? ".columns()" : "", shared(memory.columns), lane);
  } else {
    if (r.squares) {
      from = fmt::format("c{}", r.local);
      out_.line("auto {} = a{}.columns();", from, r.local);
    }
    if (groups > 1) {
      const std::string of_team =
          body_.team == body_.threads || body_.cta_group > 1 ? "0" : product("team", memory.column_bytes);
      out_.line("tile::columns_reduce<{}, {}, {}, {}>({}, {}, {});", combiner(r), team, columns, groups, from,
                sum(shared(memory.columns), of_team), lane);
    }
  }
  const int64_t handed = apart ? elements : columns;
  if (body_.whole_grid) {
    HEDDLE_CHECK(apart, "a block has a thread for each column");
    out_.line("tile::grid_columns<{}, {}, {}, {}>({}, {}, {});", combiner(r), team, handed, body_.cta_group, from,
              sum("across.packets()", fmt::format("{}", cta_group_used_ / 16)), shared(memory.columns));
    cta_group_used_ += schedule::handed_over_bytes(body_, stage.layout, r);
    if (cta_group_used_ == memory.handed_over_bytes) out_.line("across.depart();");
  } else if (body_.cta_group > 1) {
    begin_cta_group();
    out_.line("tile::cta_group_columns<{}, {}, {}>({}, {}, {});", combiner(r), handed, body_.cta_group, from,
              shared(memory.handed_over + cta_group_used_), next_cta_group_barrier());
    cta_group_used_ += schedule::handed_over_bytes(body_, stage.layout, r);
  }
  std::string condition = handed < team ? fmt::format("{} < {}", lane, handed) : "";
  if (groups == 1 && !p.outer_valid.empty()) condition = p.outer_valid;
  out_.open(condition.empty() ? std::string("{") : fmt::format("if ({}) {{", condition));
  Point own = p;
  if (apart && s.vector > 1) {
    own.outer_position = "q0";
    out_.line("const {} q0 = {} / {};", index_type(), lane, s.vector);
  }
  const std::string which = apart && s.vector > 1 ? fmt::format("{} % {}", lane, s.vector) : "";
  store_column(stage, own, r.at, *r.scratch, from + (r.squares ? ".sums()" : ".columns()"), which);
  if (r.squares) store_column(stage, own, r.squares->at, *r.squares->scratch, from + ".squares()", which);
  out_.close();
}

// `which`: the one of a vector's lanes that a thread has; empty: all of them.
void CudaSweepWriter::store_column(const CudaStage& stage, const Point& p, const schedule::Index& at, uint32_t scratch,
                                   const std::string& value, const std::string& which) {
  const ThreadLayout& s = stage.layout;
  out_.open("{");
  decode(s, p.outer_first, p.outer_last, p.outer_position);
  const std::string bounds = bounds_of(s, p.outer_first, p.outer_last);
  // A vector's columns lie side by side where they are reduced, not necessarily where the result is kept.
  begin_lanes(s);
  const std::optional<int64_t> stride = s.vector > 1 ? emitter_.lane_stride(at) : 1;
  end_lanes();
  HEDDLE_CHECK(stride.has_value(), "a result that is not affine in its columns");
  const std::string to = fmt::format("{} + {}", emitter_.names().buffers[scratch], emitter_.index(at));
  if (!bounds.empty()) out_.line("if ({})", bounds);
  if (!which.empty()) {
    out_.line("tile::store<1>({}, {});", sum(to, product(which, *stride)), value);
  } else if (*stride == 1) {
    out_.line("tile::store<1>({}, {});", to, value);
  } else {
    out_.line("tile::store_strided({}, {}, {});", to, *stride, value);
  }
  forget(s, p.outer_first, p.outer_last);
  out_.close();
}

// ---- Scans: the team walks along, a thread for each element, and carries the running result.

void CudaSweepWriter::write_scan(const CudaStage& stage) {
  const ThreadLayout& s = stage.layout;
  HEDDLE_CHECK(s.outer_loops == 0 && s.vector == 1 && stage.reductions.size() == 1, "a scan over kept variables");
  const CudaReduction& r = stage.reductions[0];
  const int64_t columns = body_.columns(s), steps = body_.inner_steps(s);
  const std::string type = value_type(r), identity = fmt::format("{}::template identity<{}>()", combiner(r), type);
  const std::string running = fmt::format("c{}", r.local), value = fmt::format("v{}", r.local);
  out_.line("{} {} = {};", type, running, identity);
  out_.open(fmt::format("for (int k1 = 0; k1 < {}; ++k1) {{", steps));
  emitter_.push_scope();
  out_.line("const {} q1 = k1 * {} + lane;", index_type(), body_.team);
  out_.line("const bool inside = q1 < {};", columns);
  out_.line("{} {} = {};", type, value, identity);
  out_.open("if (inside) {");
  emitter_.push_scope();
  decode(s, 0, s.loops.size(), "q1");
  out_.line("{} = {}.v;", value, number(r.value, r.dtype));
  emitter_.pop_scope();
  out_.close();
  out_.line("{} t{};", type, r.local);
  out_.line("const {0} e{1} = tile::team_scan<{2}, {3}>({4}, t{1}{5});", type, r.local, combiner(r), body_.team, value,
            slot(next_slot_++));
  out_.line("const {0} b{1} = {2}::apply({3}, e{1});", type, r.local, combiner(r), running);
  out_.line("const tile::vec<{}, 1> d{}{{{}}};", type, r.local,
            stage.scan->exclusive ? fmt::format("b{}", r.local)
                                  : fmt::format("{}::apply(b{}, {})", combiner(r), r.local, value));
  emitter_.names().locals[r.local] = {fmt::format("d{}", r.local), r.dtype, false};
  out_.open(has_live ? "if (inside && live) {" : "if (inside) {");
  emitter_.push_scope();
  decode(s, 0, s.loops.size(), "q1");
  const bool live = std::exchange(has_live, false);
  write_stores(stage);
  has_live = live;
  emitter_.pop_scope();
  out_.close();
  out_.line("{0} = {1}::apply({0}, t{2});", running, combiner(r), r.local);
  if (body_.team > 32) sync(body_.team);
  forget(s, 0, s.loops.size());
  emitter_.pop_scope();
  out_.close();
}

// ---- After a serial loop

const ThreadLayout& CudaSweepWriter::carried_spread() const {
  for (const CudaStage& stage : body_.stages) {
    for (const CudaReduction& r : stage.reductions) {
      if (r.over == Over::kCarried) return stage.layout;
    }
  }
  HEDDLE_CHECK(false, "nothing is carried");
}

void CudaSweepWriter::write_after(const CudaStage& stage) {
  const int64_t teams = body_.teams();
  for (const CudaStage& from : body_.stages) {
    for (const CudaReduction& r : from.reductions) {
      if (r.over != Over::kCarried) continue;
      const ThreadLayout& s = from.layout;
      const std::string result = fmt::format("f{}", r.local);
      const int64_t columns = body_.columns(s), own = steps(stage.layout);
      out_.line("tile::vec<{}, {}> {}[{}];", value_type(r), s.vector, result, own);
      if (teams == 1) {
        out_.raw("#pragma unroll");
        out_.line("for (int k = 0; k < {}; ++k) {}[k] = a{}[k].columns();", own, result, r.local);
      } else {
        out_.line("tile::combine_teams<{}, {}, {}, {}, {}>(a{}, {}, raw_shared, team, lane);", combiner(r), teams,
                  body_.team, columns, own, r.local, result);
      }
      emitter_.names().locals[r.local] = {result + "[k]", r.dtype, s.vector > 1};
    }
  }
  out_.open("{");
  out_.line("const int lane = threadIdx.x;");
  emitter_.push_scope();
  const bool live = std::exchange(has_live, false);
  write_walks(stage, body_.threads);
  has_live = live;
  emitter_.pop_scope();
  out_.close();
}

}  // namespace heddle::codegen
