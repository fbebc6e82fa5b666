#include "codegen/region/cuda/scan.h"

#include <utility>

#include "base/check.h"
#include "codegen/region/cuda/reduction_text.h"

namespace heddle::codegen {

void write_scan(SweepContext& c, const CudaStage& stage) {
  const ThreadLayout& s = stage.layout;
  HEDDLE_CHECK(s.outer_loops == 0 && s.vector == 1 && stage.reductions.size() == 1, "a scan over kept variables");
  const CudaReduction& r = stage.reductions[0];
  const int64_t columns = c.body.columns(s), steps = c.body.inner_steps(s);
  const std::string type = value_type(r), identity = fmt::format("{}::template identity<{}>()", combiner(r), type);
  const std::string running = fmt::format("c{}", r.local), value = fmt::format("v{}", r.local);
  c.out.line("{} {} = {};", type, running, identity);
  c.out.open(fmt::format("for (int k1 = 0; k1 < {}; ++k1) {{", steps));
  c.emitter.push_scope();
  c.out.line("const {} q1 = k1 * {} + lane;", c.index_type(), c.body.team);
  c.out.line("const bool inside = q1 < {};", columns);
  c.out.line("{} {} = {};", type, value, identity);
  c.out.open("if (inside) {");
  c.emitter.push_scope();
  c.decode(s, 0, s.loops.size(), "q1");
  c.out.line("{} = {}.v;", value, c.number(r.value, r.dtype));
  c.emitter.pop_scope();
  c.out.close();
  c.out.line("{} t{};", type, r.local);
  c.out.line("const {0} e{1} = tile::team_scan<{2}, {3}>({4}, t{1}{5});", type, r.local, combiner(r), c.body.team,
             value, c.next_slot());
  c.out.line("const {0} b{1} = {2}::apply({3}, e{1});", type, r.local, combiner(r), running);
  c.out.line("const tile::vec<{}, 1> d{}{{{}}};", type, r.local,
             stage.scan->exclusive ? fmt::format("b{}", r.local)
                                   : fmt::format("{}::apply(b{}, {})", combiner(r), r.local, value));
  c.emitter.names().locals[r.local] = {fmt::format("d{}", r.local), r.dtype, false};
  c.out.open(c.has_live ? "if (inside && live) {" : "if (inside) {");
  c.emitter.push_scope();
  c.decode(s, 0, s.loops.size(), "q1");
  const bool live = std::exchange(c.has_live, false);
  c.write_stores(stage);
  c.has_live = live;
  c.emitter.pop_scope();
  c.out.close();
  c.out.line("{0} = {1}::apply({0}, t{2});", running, combiner(r), r.local);
  if (c.body.team > c.body.lanes) c.sync(c.body.team);
  c.forget(s, 0, s.loops.size());
  c.emitter.pop_scope();
  c.out.close();
}

}  // namespace heddle::codegen
