#include "codegen/region/cuda/iteration.h"

#include <map>
#include <optional>
#include <set>

#include "codegen/region/cuda/cached.h"
#include "schedule/expr/expr_walk.h"

namespace heddle::codegen {
namespace {

// Where the elements begin that an iteration reads at `at`, and how many there are from the first to the last of
// them.
std::optional<std::pair<std::string, int64_t>> range_of(const schedule::Index& at, const CudaStitchDesc& body,
                                                        const std::map<VarId, std::string>& names) {
  constexpr int64_t kMost = 2048;  // more get in the way of what is read first
  std::string begin = fmt::format("({}", at.constant);
  int64_t elements = 1;
  for (const auto& [id, c] : at.terms) {
    const schedule::Atom& atom = body.pool.indices.atom(id);
    if (atom.kind != schedule::Atom::Kind::kVar || c < 0) return std::nullopt;
    std::string from;
    if (const auto fixed = names.find(atom.id); fixed != names.end()) {
      from = fixed->second;
    } else {
      if (const GridDim* d = body.blocked(atom.id)) from = names.at(d->start);
      elements += c * (body.extent(atom.id) - 1);
    }
    if (!from.empty()) begin += fmt::format(" + {} * {}", c, from);
  }
  if (elements > kMost) return std::nullopt;
  return std::pair(begin + ")", elements);
}

}  // namespace

void IterationWriter::declare_grid(int64_t total, const std::string& iteration) {
  int64_t below = 1;
  std::vector<std::pair<std::string, std::string>> variables;
  for (size_t k = c_.body.grid.size(); k-- > 0;) {
    const GridDim& d = c_.body.grid[k];
    const int64_t blocks = c_.body.blocks_of(d);
    const std::string quotient = below > 1 ? fmt::format("{} / {}", factor(iteration), below) : iteration;
    const std::string number = blocks == 1              ? std::string("0")
                               : below * blocks < total ? fmt::format("{} % {}", factor(quotient), blocks)
                                                        : quotient;
    const VarId var = d.block > 1 ? d.start : d.var;
    std::string name = fmt::format("{}{}", d.block > 1 ? 'b' : 'i', d.var);
    c_.bound |= uint64_t{1} << var;
    variables.emplace_back(name, product(number, d.block));
    // Where the variable is blocked its start has this name in every sweep.
    c_.emitter.names().vars[var] = blocks == 1 && d.block == 1 ? "0" : std::move(name);
    below *= blocks;
  }
  for (auto v = variables.rbegin(); v != variables.rend(); ++v) c_.out.declare(c_.index_type(), v->first, v->second);
}

void IterationWriter::write_ahead() {
  c_.emitter.push_scope();
  for (const CudaStage& stage : c_.body.ahead) sweeps_.write(stage);
  c_.emitter.pop_scope();
}

// While the team works on a turn of the serial loop.
void IterationWriter::write_next(VarId v) {
  const std::string now = c_.emitter.names().vars.at(v);
  const std::string next = fmt::format("({} + {})", now, c_.body.teams() * c_.body.turns);
  c_.out.open(fmt::format("if ({} < {}) {{", next, serial_end_));
  c_.emitter.names().vars[v] = next;
  write_ahead();
  c_.emitter.names().vars[v] = now;
  c_.out.close();
}

// What the sweeps behind the first exchange between blocks read besides what is kept: few bytes that nothing else
// would wait for, and memory takes as long for them as for many.
void IterationWriter::write_prefetches() {
  const size_t operands = c_.emitter.names().buffers.size() - c_.body.scratch.size();
  size_t first = 0;
  while (first < c_.body.stages.size() && c_.body.stages[first].reductions.empty()) ++first;
  std::set<ExprId> early;
  for (size_t k = 0; k <= first && k < c_.body.stages.size(); ++k) {
    visit_exprs(c_.body.pool, c_.body.stages[k].roots(), [&](ExprId e) { early.insert(e); });
  }
  std::map<std::pair<uint32_t, std::string>, int64_t> ranges;  // by operand and beginning: elements
  for (size_t k = first + 1; k < c_.body.stages.size(); ++k) {
    visit_exprs(c_.body.pool, c_.body.stages[k].roots(), [&](ExprId e) {
      const schedule::Expr& load = c_.body.pool[e];
      if (load.kind != schedule::Expr::Kind::kLoad || load.id >= operands || early.count(e) != 0) return;
      if (const auto range = range_of(load.index, c_.body, c_.emitter.names().vars)) {
        int64_t& most = ranges[{load.id, range->first}];
        most = std::max(most, range->second);
      }
    });
  }
  for (const auto& [place, elements] : ranges) {
    c_.out.line("tile::prefetch_part({} + {}, {}, lane, {});", c_.emitter.names().buffers[place.first], place.second,
                elements, c_.body.team);
  }
}

void IterationWriter::write_iteration() {
  if (c_.body.cta_group > 1) write_prefetches();
  if (c_.body.serial) return write_serial(*c_.body.serial);
  declare_cached(c_, c_.body.stages);
  if (c_.body.turns == 1 && !c_.body.ahead.empty()) {
    declare_ahead(c_);
    write_ahead();
  }
  for (const CudaStage& stage : c_.body.stages) sweeps_.write(stage);
}

// Opens a loop over the turns that a team takes at a time, if there are several. The loop is unrolled, so that the
// values loaded for each turn stay in registers.
void IterationWriter::open_turns() {
  if (c_.body.turns == 1) return;
  c_.out.raw("#pragma unroll");
  c_.out.open(fmt::format("for (int turn = 0; turn < {}; ++turn) {{", c_.body.turns));
}

void IterationWriter::close_turns() {
  if (c_.body.turns > 1) c_.out.close();
}

// The position of a turn in the serial loop. `first` is the position of the team's first turn.
std::string IterationWriter::turn_of(std::string_view first) const {
  return c_.body.turns == 1 ? std::string(first) : fmt::format("{} + turn * {}", first, c_.body.teams());
}

void IterationWriter::write_serial(VarId v) {
  const std::string name = fmt::format("i{}", v);
  serial_end_ = std::to_string(c_.body.pool.indices.extent(v));
  if (const auto& end = c_.body.serial_end) {
    serial_end_ = name + "_end";
    c_.out.line("const {} {} = ({} - {} + {}) / {};", c_.index_type(), serial_end_, end->rows,
                c_.emitter.names().vars.at(end->part), end->parts - 1, end->parts);
  }
  declare_cached(c_, c_.body.before);
  for (const CudaStage& stage : c_.body.before) sweeps_.write(stage);
  c_.bound |= uint64_t{1} << v;
  if (!c_.body.ahead.empty()) {
    declare_ahead(c_);
    open_turns();
    c_.emitter.names().vars[v] = c_.body.turns == 1 ? "team" : "(" + turn_of("team") + ")";
    c_.out.open(fmt::format("if ({} < {}) {{", turn_of("team"), serial_end_));
    write_ahead();
    c_.out.close();
    close_turns();
  }
  const bool several = c_.body.turns > 1;
  const std::string first = several ? name + "_first" : name;
  c_.out.open(fmt::format("for ({0} {1} = team; {1} < {2}; {1} += {3}) {{", c_.index_type(), first, serial_end_,
                          c_.body.teams() * c_.body.turns));
  if (several) {
    open_turns();
    c_.out.line("const {} {} = {};", c_.index_type(), name, turn_of(first));
    c_.out.open(fmt::format("if ({} < {}) {{", name, serial_end_));
  }
  c_.emitter.names().vars[v] = name;
  c_.emitter.push_scope();
  declare_cached(c_, c_.body.stages);
  if (!c_.body.ahead.empty()) sweeps_.between = [this, v] { write_next(v); };
  for (const CudaStage& stage : c_.body.stages) sweeps_.write(stage);
  if (c_.memory.bytes > 0) c_.out.line("tile::team_sync<{}>();", c_.body.team);
  c_.emitter.pop_scope();
  c_.bound &= ~(uint64_t{1} << v);
  if (several) c_.out.close();
  close_turns();
  c_.out.close();
  for (const CudaStage& stage : c_.body.after) sweeps_.write_after(stage);
}

}  // namespace heddle::codegen
