#include "codegen/recurrence/recurrent.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/hash.h"
#include "codegen/scalar/scalar.h"
#include "codegen/text/kernel_name.h"
#include "schedule/expr/expr_walk.h"

namespace heddle::codegen {
namespace {

using schedule::RecurrentDesc;
using schedule::RecurrentMapping;
using schedule::RecurrentPhase;
using schedule::RecurrentProduct;
using schedule::RecurrentResult;

// Loads that do not wait for a step's sums: those that every step repeats, and those of one step, which are under way
// during the step before.
struct Ahead {
  std::vector<ExprId> fixed, moving;
};

bool has_local(const schedule::ExprPool& pool, ExprId root) {
  bool found = false;
  schedule::visit_exprs(pool, {root}, [&](ExprId id) { found = found || pool[id].kind == Expr::Kind::kLocal; });
  return found;
}

Ahead find_ahead(const RecurrentDesc& d, const RecurrentPhase& phase) {
  Ahead ahead;
  schedule::ExprWalk walk(d.pool);
  const auto enter = [&](ExprId id) {
    const Expr& e = d.pool[id];
    if (e.kind == Expr::Kind::kLoad && !has_local(d.pool, id)) {
      const bool moves = (d.pool.vars(id) >> d.step & 1) != 0;
      (moves ? ahead.moving : ahead.fixed).push_back(id);
    }
    return e.kind != Expr::Kind::kGuard;  // only the chosen side may be loaded
  };
  for (const RecurrentResult& result : phase.results) walk.run(result.value, enter);
  return ahead;
}

// As many members on a line as fit.
void write_struct(Writer& out, const std::string& name, const std::vector<std::string>& members) {
  constexpr size_t kWidth = 100;
  std::string line = fmt::format("struct {} {{", name);
  for (const std::string& member : members) {
    if (line.size() + member.size() > kWidth) out.raw(std::exchange(line, "   "));
    line += " " + member;
  }
  out.raw(line + " };");
}

bool sends(const RecurrentPhase& phase) {
  return std::any_of(phase.results.begin(), phase.results.end(),
                     [](const RecurrentResult& r) { return !r.vectors.empty(); });
}

// A phase that multiplies and sends nothing holds nobody up: others might overwrite the vector that it still reads.
bool needs_barrier(const RecurrentDesc& d) {
  return std::any_of(d.phases.begin(), d.phases.end(),
                     [](const RecurrentPhase& phase) { return !phase.products.empty() && !sends(phase); });
}

bool is_final(const RecurrentDesc& d, const RecurrentPhase& phase) {
  return std::all_of(phase.results.begin(), phase.results.end(), [&](const RecurrentResult& r) {
    return std::all_of(r.vectors.begin(), r.vectors.end(), [&](uint32_t v) { return d.vectors[v].state.has_value(); });
  });
}

size_t phase_of_state(const RecurrentDesc& d, size_t state) {
  for (size_t p = 0; p < d.phases.size(); ++p) {
    for (const RecurrentResult& r : d.phases[p].results) {
      if (std::find(r.states.begin(), r.states.end(), state) != r.states.end()) return p;
    }
  }
  HEDDLE_CHECK(false, "nothing makes state {}", state);
}

void write_loads(Writer& out, const RecurrentDesc& d, const std::vector<schedule::Operand>& operands,
                 const std::string& name, const char* member, const std::vector<ExprId>& loads) {
  std::vector<std::string> members;
  for (const ExprId load : loads) {
    members.push_back(fmt::format("{} {}{};", storage_type(operands[d.pool[load].id].dtype), member, members.size()));
  }
  if (!members.empty()) write_struct(out, name, members);
}

void write_types(Writer& out, const RecurrentDesc& d, const std::vector<schedule::Operand>& operands,
                 const std::vector<Ahead>& ahead, const std::string& symbol) {
  out.open(fmt::format("namespace {}_parts {{", symbol));
  std::vector<std::string> pointers;
  for (size_t i = 0; i < operands.size(); ++i) {
    pointers.push_back(fmt::format("{} p{};", pointer_type(operands[i]), i));
  }
  write_struct(out, "Loop", pointers);
  write_struct(out, "Loops", {fmt::format("Loop loop[{}];", d.loops)});
  for (size_t p = 0; p < d.phases.size(); ++p) {
    write_loads(out, d, operands, fmt::format("Fixed{}", p), "f", ahead[p].fixed);
    write_loads(out, d, operands, fmt::format("Moving{}", p), "m", ahead[p].moving);
  }
  out.close("}  // namespace");
}

void cache(Names& names, const schedule::ExprPool& pool, const std::vector<ExprId>& loads, const std::string& from) {
  for (size_t i = 0; i < loads.size(); ++i) {
    names.cached[loads[i]] = loaded_value(fmt::format("tile::load<1>(&{}{})", from, i), pool[loads[i]].dtype);
  }
}

Names names_of(const RecurrentDesc& d, size_t operands, size_t p) {
  Names names;
  for (size_t i = 0; i < operands; ++i) names.buffers.push_back(fmt::format("in.p{}", i));
  names.vars[d.step] = "int64_t(t)";
  names.vars[d.row] = "int64_t(base + team.first + o)";
  names.vars[d.phases[p].unit] = fmt::format("int64_t(unit{})", p);
  return names;
}

class RecurrenceWriter {
 public:
  RecurrenceWriter(const std::vector<schedule::Operand>& operands, const RecurrentDesc& body, const KernelHead& head)
      : operands_(operands), d_(body), m_(body.mapping), symbol_(head.symbol), waits_(head.waits) {
    for (const RecurrentPhase& phase : d_.phases) ahead_.push_back(find_ahead(d_, phase));
  }

  std::string run(std::vector<std::string>& includes) {
    write_types(out_, d_, operands_, ahead_, symbol_);
    out_.line("extern \"C\" __global__ void __launch_bounds__({}, 1)", m_.threads);
    out_.open(fmt::format("    {0}(const __grid_constant__ {0}_parts::Loops loops) {{", symbol_));
    if (waits_) out_.raw(kWait);
    out_.raw("extern __shared__ __align__(16) uint8_t raw_shared[];");
    out_.line("constexpr int kCluster = {}, kLanes = {}, kRows = {}, kThreads = {};", m_.cluster, m_.lanes, m_.rows,
              m_.threads);
    out_.raw("using Team = tile::cuda::RecurrentTeam<kCluster, kLanes, kRows>;");
    out_.raw("constexpr int kOwned = Team::kOwned;");
    out_.raw("const Team team;");
    out_.raw("const int cluster = static_cast<int>(blockIdx.x) / kCluster;");
    out_.line("[[maybe_unused]] const {}_parts::Loop& in = loops.loop[cluster / {}];", symbol_, d_.clusters());
    out_.line("const int base = cluster % {} * kRows;  // first row of the cluster", d_.clusters());
    out_.line("const int rows = {0} - base < kRows ? {0} - base : kRows;", d_.rows);
    lay_out();
    start();
    write_steps();
    out_.close();
    return out_.text(includes);
  }

 private:
  // --- declarations -------------------------------------------------------------------------------------------------

  // Shared memory: barriers of the exchanges, two buffers of every vector, weights.
  void lay_out() {
    int64_t at = 16 * static_cast<int64_t>(d_.phases.size());
    if (m_.cluster > 1) out_.raw("auto* const barriers = reinterpret_cast<tile::sm90::Barrier*>(raw_shared);");
    const int64_t vectors = at;
    std::vector<std::string> pitches;
    for (size_t v = 0; v < d_.vectors.size(); ++v) {
      pitches.push_back(fmt::format("kPitch{} = {}", v, m_.pitch(d_.vectors[v].length)));
      out_.line("auto* const v{} = reinterpret_cast<float*>(raw_shared + {});  // two buffers", v, at);
      at += m_.vector_bytes(d_.vectors[v].length);
    }
    if (!pitches.empty()) out_.line("constexpr int {};", fmt::join(pitches, ", "));
    vector_words_ = (at - vectors) / 4;
    vectors_at_ = vectors;
    for (size_t p = 0; p < d_.phases.size(); ++p) {
      const RecurrentPhase& phase = d_.phases[p];
      for (size_t i = 0; i < phase.products.size(); ++i) {
        const RecurrentProduct& product = phase.products[i];
        const int64_t count = m_.share(d_.vectors[product.vector].length) * static_cast<int64_t>(product.sums.size());
        const std::string name = fmt::format("w{}_{}", p, i);
        const std::string shared =
            m_.registers ? "nullptr" : fmt::format("reinterpret_cast<float*>(raw_shared + {}) + team.thread", at);
        out_.line("tile::cuda::{}Weights<{}> {}(in.p{} + int64_t(team.rank) * {} + team.thread, kThreads, {});",
                  m_.registers ? "Register" : "Shared", count, name, product.operand, count * m_.threads, shared);
        if (!m_.registers) at += count * m_.threads * 4;
      }
    }
  }

  // Everything before the first step.
  void start() {
    if (vector_words_ > 0) {
      out_.line("for (int i = team.thread; i < {}; i += kThreads) reinterpret_cast<float*>(raw_shared + {})[i] = 0;",
                vector_words_, vectors_at_);
    }
    if (m_.cluster > 1) {
      out_.open("if (team.thread == 0) {");
      out_.line("for (int i = 0; i < {}; ++i) barriers[i].init(1);", 2 * d_.phases.size());
      out_.raw("tile::sm90::fence_barrier_init();");
      out_.close();
    }
    out_.raw("__syncthreads();");
    for (size_t v = 0; v < d_.vectors.size(); ++v) {
      const schedule::RecurrentVector& vector = d_.vectors[v];
      if (!vector.state) continue;
      out_.open(fmt::format("for (int i = team.thread; i < rows * {}; i += kThreads) {{", vector.length));
      out_.line("const auto x = tile::load<1>(in.p{} + int64_t(base) * {} + i);", d_.states[*vector.state].initial,
                vector.length);
      out_.line("v{0}[i / {1} * kPitch{0} + i % {1}] = tile::cuda::rounded<{2}>(x);", v, vector.length,
                storage_type(vector.dtype));
      out_.close();
    }
    for (size_t p = 0; p < d_.phases.size(); ++p) {
      const RecurrentPhase& phase = d_.phases[p];
      const int units = m_.units(phase.units);
      out_.line("[[maybe_unused]] const int unit{0} = team.rank * {1} + team.team;", p, units);
      out_.line("const bool active{0} = team.team < {1} && unit{0} < {2};", p, units, phase.units);
      write_ahead(p);
    }
    if (m_.cluster > 1 && !needs_barrier(d_)) declare_waits();
    for (size_t s = 0; s < d_.states.size(); ++s) {
      if (!d_.states[s].local) continue;
      const size_t p = phase_of_state(d_, s);
      out_.line("float own{}[kOwned] = {{}};", s);
      each_row_of(p);
      out_.line(
          "own{0}[o] = tile::cuda::rounded<float>(tile::load<1>(in.p{1} + int64_t(base + team.first + o) * {2} + "
          "unit{3}));",
          s, d_.states[s].initial, d_.states[s].units, p);
      out_.close();
    }
    out_.raw(m_.cluster > 1 ? "tile::sm90::cluster_sync();" : "__syncthreads();");
  }

  // Who sends in every step cannot fall two steps behind, and the first warp cannot since the exchanges count on it.
  // Warps that only pad the block, which could, do not wait: a barrier that has gone round twice tells nothing.
  void declare_waits() {
    std::string sending = "false";
    for (size_t p = 0; p < d_.phases.size(); ++p) {
      if (sends(d_.phases[p])) sending += fmt::format(" || active{}", p);
    }
    out_.line("[[maybe_unused]] const bool waits = __any_sync(0xffffffffu, team.thread < 32 || {});", sending);
  }

  void each_row(const std::vector<std::string>& assignments) {
    if (assignments.empty()) return;
    out_.raw("#pragma unroll");
    out_.line("for (int o = 0; o < kOwned; ++o) {};", fmt::join(assignments, ", "));
  }
  void each_row_of(size_t phase) {
    out_.raw("#pragma unroll");
    out_.open(fmt::format("for (int o = 0; o < kOwned; ++o) if (active{} && team.first + o < rows) {{", phase));
  }

  // What is loaded before the first step: functions, and the variables for all rows of the thread.
  void write_ahead(size_t p) {
    std::vector<std::string> first;
    if (!ahead_[p].fixed.empty()) {
      const std::string type = write_fetch(p, "Fixed", "fixed", "int o", ahead_[p].fixed);
      out_.line("{} fixed{}[kOwned];", type, p);
      first.push_back(fmt::format("fixed{0}[o] = fetch_fixed{0}(o)", p));
    }
    if (!ahead_[p].moving.empty()) {
      const std::string type = write_fetch(p, "Moving", "moving", "int t, int o", ahead_[p].moving);
      out_.line("{0} now{1}[kOwned], next{1}[kOwned] = {{}};", type, p);  // ptxas takes undefined values for uniform
      first.push_back(fmt::format("now{0}[o] = fetch_moving{0}(0, o)", p));
    }
    each_row(first);
  }
  // The type that it returns.
  std::string write_fetch(size_t p, const char* what, const char* name, const char* parameters,
                          const std::vector<ExprId>& loads) {
    const std::string type = fmt::format("{}_parts::{}{}", symbol_, what, p);
    out_.open(fmt::format("const auto fetch_{}{} = [&]({}) {{", name, p, parameters));
    // An index that is loaded is a statement, which who has no row skips.
    const bool dynamic = std::any_of(loads.begin(), loads.end(), [&](ExprId load) {
      bool found = false;
      schedule::visit_exprs(d_.pool, {load}, [&](ExprId id) { found = found || id != load; });
      return found;
    });
    if (dynamic) out_.line("if (!active{} || team.first + o >= rows) return {}{{}};", p, type);
    ScalarEmitter emitter(d_.pool, names_of(d_, operands_.size(), p), out_);
    std::vector<std::string> values;
    for (const ExprId load : loads) {
      const Expr& e = d_.pool[load];
      values.push_back(fmt::format("in.p{}[{}]", e.id, emitter.index(e.index)));
    }
    out_.line("return active{0} && team.first + o < rows ? {1}{{{2}}} : {1}{{}};", p, type, fmt::join(values, ", "));
    out_.close("};");
    return type;
  }

  // --- a step -------------------------------------------------------------------------------------------------------

  void write_steps() {
    out_.open(fmt::format("for (int t = 0; t < {}; ++t) {{", d_.steps));
    std::vector<std::string> fetched, moved;
    for (size_t p = 0; p < d_.phases.size(); ++p) {
      if (ahead_[p].moving.empty()) continue;
      fetched.push_back(fmt::format("next{0}[o] = fetch_moving{0}(t + 1, o)", p));
      moved.push_back(fmt::format("now{0}[o] = next{0}[o]", p));
    }
    if (!fetched.empty()) {
      out_.open(fmt::format("if (t + 1 < {}) {{", d_.steps));
      for (const std::string& fetch : fetched) each_row({fetch});
      out_.close();
    }
    for (size_t p = 0; p < d_.phases.size(); ++p) write_phase(p);
    if (needs_barrier(d_)) out_.raw(m_.cluster > 1 ? "tile::sm90::cluster_sync();" : "__syncthreads();");
    each_row(moved);
    out_.close();
    // Nobody ends while others may still store into its memory.
    if (m_.cluster > 1) out_.raw("tile::sm90::cluster_sync();");
  }

  void write_phase(size_t p) {
    const RecurrentPhase& phase = d_.phases[p];
    const bool last_too = !is_final(d_, phase);  // what the last step sends is read in it
    out_.open("{");
    if (sends(phase)) {
      int64_t elements = 0;
      for (const RecurrentResult& r : phase.results) elements += static_cast<int64_t>(r.vectors.size()) * phase.units;
      if (m_.cluster > 1) {
        out_.line("const tile::cuda::RecurrentExchange<kCluster> exchange{{&barriers[{} + (t & 1)]}};", 2 * p);
      } else {
        out_.raw("const tile::cuda::RecurrentExchange<kCluster> exchange{nullptr};");
      }
      const std::string when = last_too ? "" : fmt::format(" && t + 1 < {}", d_.steps);
      if (m_.cluster > 1) out_.line("if (team.thread == 0{}) exchange.expect(rows * {});", when, elements * 4);
    }
    for (size_t i = 0; i < phase.products.size(); ++i) {
      const RecurrentProduct& product = phase.products[i];
      const int64_t length = d_.vectors[product.vector].length;
      out_.line("float sum{}[kRows][{}] = {{}};", i, product.sums.size());
      out_.line(
          "tile::cuda::recurrent_sums<kLanes, kRows, {0}, {1}, {2}>(sum{3}, w{4}_{3}, kThreads, v{5} + (t & 1) * "
          "(kRows * kPitch{5}), kPitch{5}, team.lane);",
          product.sums.size(), m_.share(length), m_.width(length), i, p, product.vector);
    }
    each_row_of(p);
    write_results(p);
    out_.close();
    if (sends(phase)) {
      std::vector<std::string> conditions;
      if (!last_too) conditions.push_back(fmt::format("t + 1 < {}", d_.steps));
      if (m_.cluster > 1 && !needs_barrier(d_)) conditions.emplace_back("waits");
      const std::string when = fmt::format("{}", fmt::join(conditions, " && "));
      out_.raw((when.empty() ? "" : "if (" + when + ") ") + "exchange.wait(t >> 1 & 1);");
    }
    out_.close();
  }

  void write_results(size_t p) {
    const RecurrentPhase& phase = d_.phases[p];
    Names names = names_of(d_, operands_.size(), p);
    for (size_t i = 0; i < phase.products.size(); ++i) {
      for (size_t s = 0; s < phase.products[i].sums.size(); ++s) {
        const uint32_t local = phase.products[i].sums[s].local;
        names.locals[local] = {fmt::format("tile::splat<1>(sum{}[o][{}])", i, s), DType::kF32};
      }
    }
    for (size_t s = 0; s < d_.states.size(); ++s) {
      if (!d_.states[s].local || d_.states[s].units != phase.units) continue;
      out_.declare("auto", fmt::format("l{}", *d_.states[s].local), fmt::format("tile::splat<1>(own{}[o])", s));
      names.locals[*d_.states[s].local] = {fmt::format("l{}", *d_.states[s].local), DType::kF32};
    }
    cache(names, d_.pool, ahead_[p].fixed, fmt::format("fixed{}[o].f", p));
    cache(names, d_.pool, ahead_[p].moving, fmt::format("now{}[o].m", p));
    ScalarEmitter emitter(d_.pool, std::move(names), out_);
    // First what others wait for.
    for (size_t r = 0; r < phase.results.size(); ++r) {
      const RecurrentResult& result = phase.results[r];
      const std::string value = emitter.vector(result.value);
      if (result.states.empty() && result.vectors.empty()) continue;
      out_.line("const float r{} = tile::cuda::rounded<{}>({});", r, storage_type(result.dtype), value);
      for (const uint32_t v : result.vectors) write_send(v, r, result.dtype, p);
    }
    for (size_t r = 0; r < phase.results.size(); ++r) {
      for (const uint32_t s : phase.results[r].states) out_.line("own{}[o] = r{};", s, r);
    }
    write_stores(phase, emitter);
  }

  // One lane of those that have the same row stores.
  void write_stores(const RecurrentPhase& phase, ScalarEmitter& emitter) {
    const auto& results = phase.results;
    const bool stacks = std::any_of(results.begin(), results.end(), [](const auto& r) { return !r.stacked.empty(); });
    const bool ends = std::any_of(results.begin(), results.end(), [](const auto& r) { return !r.finals.empty(); });
    if (stacks) out_.open("if (team.copy == 0) {");
    for (const RecurrentResult& result : results) {
      for (const uint32_t operand : result.stacked) {
        emitter.store(fmt::format("in.p{}", operand), operands_[operand].dtype, result.place_of_step, result.value);
      }
    }
    if (ends) out_.open(fmt::format("if ({}t + 1 == {}) {{", stacks ? "" : "team.copy == 0 && ", d_.steps));
    for (const RecurrentResult& result : results) {
      for (const uint32_t operand : result.finals) {
        emitter.store(fmt::format("in.p{}", operand), operands_[operand].dtype, result.place, result.value);
      }
    }
    if (ends) out_.close();
    if (stacks) out_.close();
  }

  void write_send(uint32_t v, size_t r, DType from, size_t p) {
    const schedule::RecurrentVector& vector = d_.vectors[v];
    std::string value = fmt::format("r{}", r);
    if (vector.dtype != from) {
      value = fmt::format("tile::cuda::rounded<{}>(tile::splat<1>({}))", storage_type(vector.dtype), value);
    }
    const std::string send = fmt::format(
        "exchange.template send<Team::kCopies>(v{0} + (({1} & 1) * kRows + team.first + o) * kPitch{0} + unit{2}, {3}, "
        "team.copy);",
        v, vector.state ? "(t + 1)" : "t", p, value);
    out_.raw(vector.state ? fmt::format("if (t + 1 < {}) ", d_.steps) + send : send);
  }

  const std::vector<schedule::Operand>& operands_;
  const RecurrentDesc& d_;
  const RecurrentMapping& m_;
  const std::string symbol_;
  const bool waits_;
  std::vector<Ahead> ahead_;
  Writer out_;
  int64_t vector_words_ = 0, vectors_at_ = 0;
};

}  // namespace

KernelSource emit_cuda_recurrence(const schedule::KernelPlan& plan, const RecurrentDesc& body,
                                  const CudaTarget& target) {
  const auto first = plan.desc.operands.begin();
  const std::vector<schedule::Operand> operands(first, first + body.loop_operands);
  KernelSource source;
  source.includes = {"tile/op/cuda/stitch.h", "tile/kernel/cuda/recurrence/recurrent.h"};
  const std::string draft = RecurrenceWriter(operands, body, {"kernel"}).run(source.includes);
  source.symbol = fmt::format("recurrent_{}", hash_text(target.architecture() + "\n" + draft).hex().substr(0, 16));
  source.text = RecurrenceWriter(operands, body, {source.symbol, plan.waits}).run(source.includes);
  if (plan.waits) source.includes.emplace_back(kWaitHeader);
  source.launches = plan.launches;
  source.launches.front().symbol = source.symbol;
  return source;
}

}  // namespace heddle::codegen
