#include "codegen/region/cuda/results.h"

#include <algorithm>

#include "base/check.h"
#include "codegen/region/cuda/reduction_text.h"

namespace heddle::codegen {

void ResultWriter::finish_team(const CudaStage& stage, const CudaReduction& r) {
  const std::string from = fmt::format("a{}.row()", r.local);
  std::string reduced;
  if (stage.layout.replicated) {
    HEDDLE_CHECK(c_.body.cta_group == 1, "a cta_group's result is that of all its blocks");
    reduced = fmt::format("tile::team_reduce<{}, {}>({})", combiner(r), c_.body.lanes, from);
  } else if (c_.body.cta_group > 1) {
    begin_cta_group();
    reduced = fmt::format("tile::cta_group_reduce<{}, {}, {}>({}{}, {})", combiner(r), c_.body.threads,
                          c_.body.cta_group, from, c_.next_slot(), next_cta_group_barrier());
  } else {
    reduced = fmt::format("tile::team_reduce<{}, {}>({}{})", combiner(r), c_.body.team, from, c_.next_slot());
  }
  if (r.squares && r.squares->drift) {
    c_.out.line("tile::split_moments<{}>({}, {}, drift{}, squares{});", r.squares->count, reduced, result_name(r),
                r.squares->drift->local, r.squares->local);
  } else if (r.squares) {
    c_.out.line("tile::split_moments({}, {}, squares{});", reduced, result_name(r), r.squares->local);
  } else if (is_arg(r.combine)) {
    c_.out.line("{}.v = int64_t({}.where);", result_name(r), reduced);
  } else if (r.dtype == DType::kBool) {
    c_.out.line("{} = tile::to_mask(tile::vec<uint8_t, 1>{{{}}});", result_name(r), reduced);
  } else {
    c_.out.line("{}.v = {};", result_name(r), reduced);
  }
}

// The first exchange waits until all blocks of the cluster have begun.
std::string ResultWriter::next_cta_group_barrier() {
  const int64_t at = c_.memory.barriers + schedule::SharedMemory::kBarrierBytes * next_cta_group_barrier_++;
  return fmt::format("reinterpret_cast<tile::cta_group_barrier*>({})", c_.shared(at));
}

void ResultWriter::begin_cta_group() {
  if (!cta_group_began_) c_.out.line("tile::sm90::cluster_wait();");
  cta_group_began_ = true;
}

void ResultWriter::finish_group(const CudaStage& stage, const CudaReduction& r, const Point& p) {
  const ThreadLayout& s = stage.layout;
  c_.out.line("const auto c{} = tile::lanes_reduce<{}, {}>(a{}.row());", r.local, combiner(r),
              std::min(s.group, c_.body.lanes), r.local);
  std::string condition = s.group > 1 ? fmt::format("lane % {} == 0", s.group) : "";
  if (!p.outer_valid.empty()) condition += (condition.empty() ? "" : " && ") + p.outer_valid;
  c_.out.open(condition.empty() ? std::string("{") : fmt::format("if ({}) {{", condition));
  c_.decode(s, p.outer_first, p.outer_last, p.outer_position);
  const std::string bounds = c_.bounds_of(s, p.outer_first, p.outer_last);
  c_.out.line("{}{}[{}] = c{}{};", bounds.empty() ? "" : fmt::format("if ({}) ", bounds),
              c_.emitter.names().buffers[*r.scratch], c_.emitter.index(r.at), r.local,
              is_arg(r.combine) ? ".where" : "");
  c_.forget(s, p.outer_first, p.outer_last);
  c_.out.close();
}

void ResultWriter::finish_column(const CudaStage& stage, const CudaReduction& r, const Point& p) {
  const ThreadLayout& s = stage.layout;
  const int64_t columns = c_.body.columns(s), elements = columns * s.vector;
  const int team = c_.body.cta_group > 1 ? c_.body.threads : p.team;
  const int64_t active = c_.body.cta_group > 1 ? team : s.active, groups = columns <= active ? active / columns : 1;
  const char* lane = c_.body.cta_group > 1 ? "own" : "lane";
  HEDDLE_CHECK(c_.body.cta_group == 1 || team % columns == 0);
  // A thread for each element of the result, where a block has enough.
  const bool apart = team > c_.body.lanes && groups > 1 && elements <= team;
  std::string from = fmt::format("a{}", r.local);
  if (groups > 1) {
    if (c_.columns_dirty) c_.sync(c_.body.team);
    c_.columns_dirty = true;
  }
  if (apart) {
    from = fmt::format("c{}", r.local);
    c_.out.line("auto {} = tile::columns_apart<{}, {}, {}, {}>(a{}{}, {}, {});", from, combiner(r), team, columns,
                groups, r.local, r.squares ? ".columns()" : "", c_.shared(c_.memory.columns), lane);
  } else {
    if (r.squares) {
      from = fmt::format("c{}", r.local);
      c_.out.line("auto {} = a{}.columns();", from, r.local);
    }
    if (groups > 1) {
      const std::string of_team =
          c_.body.team == c_.body.threads || c_.body.cta_group > 1 ? "0" : product("team", c_.memory.column_bytes);
      c_.out.line("tile::columns_reduce<{}, {}, {}, {}>({}, {}, {});", combiner(r), team, columns, groups, from,
                  sum(c_.shared(c_.memory.columns), of_team), lane);
    }
  }
  const int64_t handed = apart ? elements : columns;
  if (c_.body.whole_grid) {
    HEDDLE_CHECK(apart, "a block has a thread for each column");
    c_.out.line("tile::grid_columns<{}, {}, {}, {}>({}, {}, {});", combiner(r), team, handed, c_.body.cta_group, from,
                sum("across.packets()", fmt::format("{}", cta_group_used_ / 16)), c_.shared(c_.memory.columns));
    cta_group_used_ += schedule::handed_over_bytes(c_.body, stage.layout, r);
    if (cta_group_used_ == c_.memory.handed_over_bytes) c_.out.line("across.depart();");
  } else if (c_.body.cta_group > 1) {
    begin_cta_group();
    c_.out.line("tile::cta_group_columns<{}, {}, {}>({}, {}, {});", combiner(r), handed, c_.body.cta_group, from,
                c_.shared(c_.memory.handed_over + cta_group_used_), next_cta_group_barrier());
    cta_group_used_ += schedule::handed_over_bytes(c_.body, stage.layout, r);
  }
  std::string condition = handed < team ? fmt::format("{} < {}", lane, handed) : "";
  if (groups == 1 && !p.outer_valid.empty()) condition = p.outer_valid;
  c_.out.open(condition.empty() ? std::string("{") : fmt::format("if ({}) {{", condition));
  Point own = p;
  if (apart && s.vector > 1) {
    own.outer_position = "q0";
    c_.out.line("const {} q0 = {} / {};", c_.index_type(), lane, s.vector);
  }
  const std::string which = apart && s.vector > 1 ? fmt::format("{} % {}", lane, s.vector) : "";
  store_column(stage, own, r.at, *r.scratch, from + (r.squares ? ".sums()" : ".columns()"), which);
  if (r.squares) {
    const auto& drift = r.squares->drift;
    store_column(stage, own, r.squares->at, *r.squares->scratch, from + (drift ? ".drifting_squares()" : ".squares()"),
                 which);
    if (drift) store_column(stage, own, drift->at, *drift->scratch, from + ".drifts()", which);
  }
  c_.out.close();
}

void ResultWriter::store_column(const CudaStage& stage, const Point& p, const schedule::Index& at, uint32_t scratch,
                                const std::string& value, const std::string& which) {
  const ThreadLayout& s = stage.layout;
  c_.out.open("{");
  c_.decode(s, p.outer_first, p.outer_last, p.outer_position);
  const std::string bounds = c_.bounds_of(s, p.outer_first, p.outer_last);
  // A vector's columns lie side by side where they are reduced, not necessarily where the result is kept.
  c_.begin_lanes(s);
  const std::optional<int64_t> stride = s.vector > 1 ? c_.emitter.lane_stride(at) : 1;
  c_.end_lanes();
  HEDDLE_CHECK(stride.has_value(), "a result that is not affine in its columns");
  const std::string to = fmt::format("{} + {}", c_.emitter.names().buffers[scratch], c_.emitter.index(at));
  if (!bounds.empty()) c_.out.line("if ({})", bounds);
  if (!which.empty()) {
    c_.out.line("tile::store<1>({}, {});", sum(to, product(which, *stride)), value);
  } else if (*stride == 1) {
    c_.out.line("tile::store<1>({}, {});", to, value);
  } else {
    c_.out.line("tile::store_strided({}, {}, {});", to, *stride, value);
  }
  c_.forget(s, p.outer_first, p.outer_last);
  c_.out.close();
}

void ResultWriter::finish_carried(const ThreadLayout& layout) {
  const int64_t teams = c_.body.teams(), own = c_.steps(layout);
  for (const CudaStage& from : c_.body.stages) {
    for (const CudaReduction& r : from.reductions) {
      if (r.over != CudaReduction::Over::kCarried) continue;
      const int vector = from.layout.vector;
      const std::string result = fmt::format("f{}", r.local);
      c_.out.line("tile::vec<{}, {}> {}[{}];", value_type(r), vector, result, own);
      if (teams == 1) {
        c_.out.raw("#pragma unroll");
        c_.out.line("for (int k = 0; k < {}; ++k) {}[k] = a{}[k].columns();", own, result, r.local);
      } else {
        c_.out.line("tile::combine_teams<{}, {}, {}, {}, {}>(a{}, {}, raw_shared, team, lane);", combiner(r), teams,
                    c_.body.team, c_.body.columns(from.layout), own, r.local, result);
      }
      c_.emitter.names().locals[r.local] = {result + "[k]", r.dtype, vector > 1};
    }
  }
}

}  // namespace heddle::codegen
