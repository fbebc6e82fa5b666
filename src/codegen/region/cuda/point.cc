#include "codegen/region/cuda/point.h"

#include "codegen/text/writer.h"

namespace heddle::codegen {

Point point_of(const schedule::CudaStitchDesc& body, const schedule::ThreadLayout& s, int team) {
  const int64_t rows = body.rows(s), columns = body.columns(s), outer = body.outer_steps(s),
                inner = body.inner_steps(s);
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
  if (p.outer_valid.empty() && factor(p.outer) == p.outer) p.outer_position = p.outer;
  return p;
}

}  // namespace heddle::codegen
