#include "codegen/region/cuda/stitch.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/check.h"
#include "base/divide.h"
#include "codegen/region/cpu/stitch.h"
#include "codegen/region/cuda/sweep.h"
#include "codegen/text/kernel_name.h"
#include "codegen/text/naming.h"
#include "codegen/text/numbers.h"
#include "schedule/region/cuda/mapping.h"

namespace heddle::codegen {

using schedule::CudaStage;
using schedule::CudaStitchDesc;
using schedule::ExprId;
using schedule::GridDim;
using schedule::VarId;

namespace {

// The parameter that says how many iterations there are.
constexpr std::string_view kCount = "iterations";

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
      for (const GridDim& d : body.grid) {
        if (d.var == atom.id && d.block > 1) from = names.at(d.start);
      }
      elements += c * (body.extent(atom.id) - 1);
    }
    if (!from.empty()) begin += fmt::format(" + {} * {}", c, from);
  }
  if (elements > kMost) return std::nullopt;
  return std::pair(begin + ")", elements);
}

class CudaStitchWriter {
 public:
  CudaStitchWriter(const schedule::KernelDesc& desc, const CudaStitchDesc& body, bool marked,
                   const Naming* naming = nullptr)
      : desc_(desc), body_(body), naming_(naming), sweeps_(body, out_), marked_(marked) {
    if (marked) sweeps_.emitter().mark_numbers();
  }

  CudaPart run_part() {
    is_part_ = true, block_ = "block", blocks_ = "blocks";
    HEDDLE_CHECK(memory_.bytes == 0 && body_.cta_group == 1, "a part has no shared memory");
    CudaPart part;
    part.parameters = parameters("__restrict__ ") + ", const unsigned block, const unsigned blocks";
    if (marked_) out_.raw(argument_line(kArgumentParameter));
    declare_threads();
    write_grid();
    part.includes = {"tile/op/cuda/stitch.h"};
    part.body = out_.text(part.includes);
    Writer::add_headers(part.parameters, part.includes);
    for (const schedule::Operand& o : desc_.operands) {
      const bool input = o.role == schedule::Operand::Role::kInput;
      part.types.push_back(fmt::format("{}{}*", input ? "const " : "", storage_type(o.dtype)));
    }
    return part;
  }

  KernelSource run(const schedule::KernelPlan& plan) {
    const std::string restricted = parameters("__restrict__ "), arguments = names_behind_previous();
    KernelSource source;
    source.includes = {"tile/op/cuda/stitch.h"};
    const std::string body = body_text(source.includes);
    Writer::add_headers(restricted, source.includes);
    const auto text = [&](const KernelHead& head) {
      return plan.waits ? waiting_text(head.symbol, restricted, body, arguments)
                        : fmt::format("{}\n{} {}({}) {{\n{}}}\n", comment_of(body_.title), attributes(), head.symbol,
                                      restricted, body);
    };
    if (naming_ != nullptr || marked_) {
      source.symbol = naming_ != nullptr ? naming_->symbol : kernel_name(body_);
      source.text = text({naming_ != nullptr ? source.symbol : kStandIn});
    } else {
      name_kernel(source, kernel_name(body_), text, false);
    }
    if (body_.cta_group > 1)
      source.includes.emplace_back(body_.whole_grid ? "tile/op/cuda/grid.h" : "tile/op/cuda/cta_group.h");
    if (has_moments()) source.includes.emplace_back("tile/op/cuda/moments.h");
    source.counter_bytes = plan.counter_bytes;
    if (plan.waits) source.includes.emplace_back(kWaitHeader);
    source.tasks = body_.blocks;
    source.launches = plan.launches;
    CudaLaunch& launch = source.launches.front();
    launch.symbol = source.symbol;
    if (marked_) {
      launch.pointers.push_back(
          {static_cast<int>(launch.arguments.size()), 0, static_cast<int>(desc_.operands.size())});
      launch.arguments.emplace_back(sizeof(uint64_t));
    }
    return source;
  }

 private:
  std::string attributes() const {
    const std::string cluster =
        body_.cta_group > 1 && !body_.whole_grid ? fmt::format("__cluster_dims__({}, 1, 1) ", body_.cta_group) : "";
    const std::string bounds = body_.min_blocks_per_sm > 0
                                   ? fmt::format("{}, {}", body_.threads, body_.min_blocks_per_sm)
                                   : fmt::format("{}", body_.threads);
    return fmt::format("extern \"C\" __global__ void {}__launch_bounds__({})", cluster, bounds);
  }

  // The kernel waits for the launch in front before it calls its body: loads through its own restricted pointers might
  // be moved across that.
  std::string waiting_text(const std::string& symbol, const std::string& restricted, const std::string& body,
                           const std::string& arguments) {
    return fmt::format(
        "{0}\nnamespace {1}_parts {{\n__device__ __forceinline__ void kernel({2}) {{\n{3}}}\n}}\n"
        "{4} {1}({5}) {{\n  {6}\n  {1}_parts::kernel({7});\n}}\n",
        comment_of(body_.title), symbol, restricted, body, attributes(), parameters(""), kBeginEarly, arguments);
  }

  std::string body_text(std::vector<std::string>& includes) {
    if (marked_) out_.raw(argument_line(kArgumentParameter));
    if (body_.whole_grid) {
      out_.line("tile::grid_cta_group<{}, {}> across(counters);", body_.cta_group, memory_.handed_over_bytes / 16);
    }
    if (memory_.bytes > 0) out_.raw("extern __shared__ __align__(16) uint8_t raw_shared[];");
    if (memory_.barrier_count > 0) {
      out_.line("tile::cta_group_begin<{}>({});", memory_.barrier_count, sweeps_.shared(memory_.barriers));
    }
    declare_threads();
    declare_scratch();
    write_grid();
    if (body_.whole_grid) out_.line("across.leave();");
    return out_.text(includes);
  }

  // Parts of a bundle are told nothing of their own.
  bool has_count() const { return !is_part_ && body_.counts_iterations(); }
  std::string count() const { return has_count() ? std::string(kCount) : fmt::format("{}", body_.iterations()); }

  std::string index_type() const { return body_.wide_index ? "int64_t" : "int"; }

  std::string parameters(std::string_view restricted) {
    sweeps_.emitter().names().evict_first = body_.evict_first;
    sweeps_.emitter().names().l1_resident = body_.l1_resident;
    std::string text;
    sweeps_.emitter().names().buffers.clear();
    for (size_t i = 0; i < desc_.operands.size(); ++i) {
      const schedule::Operand& o = desc_.operands[i];
      const bool input = o.role == schedule::Operand::Role::kInput;
      const std::string name = naming_ != nullptr ? naming_->operands.at(i) : fmt::format("{}{}", input ? 'x' : 'y', i);
      text += fmt::format("{}{}{}* {}{}", i == 0 ? "" : ", ", input ? "const " : "", storage_type(o.dtype), restricted,
                          name);
      sweeps_.emitter().names().buffers.push_back(name);
    }
    if (body_.whole_grid) text += ", uint8_t* counters";
    if (has_count()) text += fmt::format(", const {} {}", index_type(), kCount);
    if (marked_) text += fmt::format(", const int64_t* {}{}", restricted, kArgumentParameter);
    return text;
  }
  // What an early kernel hands on; those of the whole grid are not early.
  std::string names_behind_previous() {
    std::string text;
    for (const std::string& name : sweeps_.emitter().names().buffers) {
      text += fmt::format("{}tile::sm90::launder_after_wait({})", text.empty() ? "" : ", ", name);
    }
    if (has_count()) text += fmt::format(", {}", kCount);
    if (marked_) text += fmt::format(", {}", kArgumentParameter);
    return text;
  }

  bool has_moments() const {
    return std::any_of(body_.stages.begin(), body_.stages.end(), [](const CudaStage& stage) {
      return std::any_of(stage.reductions.begin(), stage.reductions.end(),
                         [](const schedule::CudaReduction& r) { return r.squares.has_value(); });
    });
  }

  void declare_threads() {
    const int team = body_.team;
    const bool one = team == body_.threads;
    const std::string thread = "int(threadIdx.x)";
    if (body_.cta_group > 1) {
      out_.line("const int own = {};", thread);
      out_.line("TILE_ASSUME(own < {});", body_.threads);
      const char* rank = body_.whole_grid ? "blockIdx.x" : "tile::sm90::cluster_rank()";
      out_.declare("int", "lane", fmt::format("int({} % {}) * {} + own", rank, body_.cta_group, body_.threads));
      return;
    }
    out_.declare("int", "lane", team == 1 ? "0" : one ? thread : fmt::format("{} % {}", thread, team));
    out_.declare("int", "team", one ? "0" : team == 1 ? thread : fmt::format("{} / {}", thread, team));
  }

  void declare_scratch() {
    const int64_t bytes = memory_.scratch_bytes;
    int64_t offset = 0;
    for (size_t i = 0; i < body_.scratch.size(); ++i) {
      const schedule::Scratch& s = body_.scratch[i];
      const std::string name = fmt::format("s{}", i);
      const std::string at =
          sum("raw_shared", sum(fmt::format("{}", offset), body_.teams() > 1 ? product("team", bytes) : "0"));
      out_.line("auto* {} = reinterpret_cast<{}*>({});  // {} elements", name, storage_type(s.dtype), at, s.elements);
      sweeps_.emitter().names().buffers.push_back(name);
      offset += (s.elements * static_cast<int64_t>(size_of(s.dtype)) + 15) / 16 * 16;
    }
  }

  // Each team its iterations, several at a time where a thread has little of one.
  void write_grid() {
    const std::string type = index_type();
    const int64_t total = body_.iterations(), teams = body_.serial ? 1 : body_.teams();
    const int64_t units = body_.iterations_at_once();
    const bool loop = body_.walks_grid();
    HEDDLE_CHECK(!loop || body_.cta_group == 1, "what a cta_group hands over is used once");
    const std::string block = body_.cta_group > 1 ? fmt::format("{}({}) / {}", type, block_, body_.cta_group)
                                                  : fmt::format("{}({})", type, block_);
    const std::string start = product(block, units);
    if (body_.serial) sweeps_.declare_carried();
    if (loop) {
      out_.open(fmt::format("for ({0} first = {1}; first < {2}; first += {0}({4}) * {3}) {{", type, start, count(),
                            units, blocks_));
    } else {
      out_.declare(type, "first", start);
    }
    const std::string first = loop || teams > 1 ? "first" : start;
    if (body_.turns > 1) sweeps_.declare_ahead();
    if (body_.turns > 1) {
      if (total % units != 0) out_.open(fmt::format("if ({}) {{", is_full(units)));
      write_turns(total, teams, true);
      if (total % units != 0) {
        out_.middle("} else {");
        write_turns(total, teams, false);
        out_.close();
      }
    } else {
      write_team(total, teams > 1 ? "first + team" : first, total % units == 0);
    }
    if (loop) {
      if (memory_.bytes > 0 && body_.team > 1) out_.line("tile::team_sync<{}>();", body_.team);
      out_.close();
    }
  }

  // Whether the iterations from `first` on are `units`. With the count of blocks in place of that of iterations ptxas
  // keeps more loads in flight.
  std::string is_full(int64_t units) const {
    const bool one_each = !body_.walks_grid() && body_.cta_group == 1;
    return has_count() && one_each && body_.blocks == ceil_div(body_.iterations(), units)
               ? fmt::format("{} + 1 < {}", block_, blocks_)
               : fmt::format("first + {} <= {}", units, count());
  }

  void write_turns(int64_t total, int64_t teams, bool full) {
    if (!body_.ahead.empty()) {
      reads_ahead_ = true;
      write_each_turn(total, teams, full);
      reads_ahead_ = false;
    }
    write_each_turn(total, teams, full);
  }
  void write_each_turn(int64_t total, int64_t teams, bool full) {
    if (full || reads_ahead_) out_.raw("#pragma unroll");
    out_.open(fmt::format("for (int turn = 0; turn < {}; ++turn) {{", body_.turns));
    sweeps_.emitter().push_scope();
    write_team(total, fmt::format("first + turn * {}{}", teams, teams > 1 ? " + team" : ""), full);
    sweeps_.emitter().pop_scope();
    // The next turn writes the scratch that slower lanes of the team may still read.
    if (memory_.bytes > 0 && body_.team > 1 && !reads_ahead_) out_.line("tile::team_sync<{}>();", body_.team);
    out_.close();
  }

  // The iteration `mine`, if there is one. Warps stay together: in one with fewer iterations than teams all compute,
  // some store.
  void write_team(int64_t total, const std::string& mine, bool full) {
    const std::string type = index_type();
    const bool shared_warp = body_.team < 32 && body_.team > 1;
    sweeps_.has_live = !full && shared_warp;
    const bool guarded = !full && !shared_warp;
    std::string iteration = "g";
    if (sweeps_.has_live) {
      out_.line("const bool live = {} < {};", mine, count());
      out_.line("const {} g = live ? {} : {} - 1;", type, mine, count());
    } else if (guarded || grid_dims() > 1) {
      out_.declare(type, "g", mine);
    } else {
      iteration = mine;
    }
    if (guarded) out_.open(fmt::format("if (g < {}) {{", count()));
    declare_grid(total, iteration);
    write_iteration();
    if (guarded) out_.close();
  }

  // Those along which iterations differ.
  int64_t grid_dims() const {
    return std::count_if(body_.grid.begin(), body_.grid.end(),
                         [this](const GridDim& d) { return body_.blocks_of(d) > 1; });
  }

  // The variables that an iteration fixes, last grid dimension fastest.
  void declare_grid(int64_t total, const std::string& iteration) {
    int64_t below = 1;
    std::vector<std::pair<std::string, std::string>> variables;
    for (size_t k = body_.grid.size(); k-- > 0;) {
      const GridDim& d = body_.grid[k];
      const int64_t blocks = body_.blocks_of(d);
      const std::string quotient = below > 1 ? fmt::format("{} / {}", factor(iteration), below) : iteration;
      const std::string number = blocks == 1              ? std::string("0")
                                 : below * blocks < total ? fmt::format("{} % {}", factor(quotient), blocks)
                                                          : quotient;
      const VarId var = d.block > 1 ? d.start : d.var;
      std::string name = fmt::format("{}{}", d.block > 1 ? 'b' : 'i', d.var);
      sweeps_.bound |= uint64_t{1} << var;
      variables.emplace_back(name, product(number, d.block));
      // Where the variable is blocked its start has this name in every sweep.
      sweeps_.emitter().names().vars[var] = blocks == 1 && d.block == 1 ? "0" : std::move(name);
      below *= blocks;
    }
    for (auto v = variables.rbegin(); v != variables.rend(); ++v) out_.declare(index_type(), v->first, v->second);
  }

  void write_ahead() {
    sweeps_.emitter().push_scope();
    for (const CudaStage& stage : body_.ahead) sweeps_.write(stage);
    sweeps_.emitter().pop_scope();
  }
  // While the team works on a turn of the serial loop.
  void write_next(VarId v) {
    const std::string now = sweeps_.emitter().names().vars.at(v), next = fmt::format("({} + {})", now, body_.teams());
    out_.open(fmt::format("if ({} < {}) {{", next, body_.pool.indices.extent(v)));
    sweeps_.emitter().names().vars[v] = next;
    write_ahead();
    sweeps_.emitter().names().vars[v] = now;
    out_.close();
  }

  // What the sweeps behind the first exchange between blocks read besides what is kept: few bytes that nothing else
  // would wait for, and memory takes as long for them as for many.
  void write_prefetches() {
    size_t first = 0;
    while (first < body_.stages.size() && body_.stages[first].reductions.empty()) ++first;
    std::set<ExprId> early;
    for (size_t k = 0; k <= first && k < body_.stages.size(); ++k) {
      visit_exprs(body_.pool, body_.stages[k].roots(), [&](ExprId e) { early.insert(e); });
    }
    std::map<std::pair<uint32_t, std::string>, int64_t> ranges;  // by operand and beginning: elements
    for (size_t k = first + 1; k < body_.stages.size(); ++k) {
      visit_exprs(body_.pool, body_.stages[k].roots(), [&](ExprId e) {
        const schedule::Expr& load = body_.pool[e];
        if (load.kind != schedule::Expr::Kind::kLoad || load.id >= desc_.operands.size() || early.count(e) != 0) return;
        if (const auto range = range_of(load.index, body_, sweeps_.emitter().names().vars)) {
          int64_t& most = ranges[{load.id, range->first}];
          most = std::max(most, range->second);
        }
      });
    }
    for (const auto& [place, elements] : ranges) {
      out_.line("tile::prefetch_part({} + {}, {}, lane, {});", sweeps_.emitter().names().buffers[place.first],
                place.second, elements, body_.team);
    }
  }
  void write_iteration() {
    if (reads_ahead_) return write_ahead();
    if (body_.cta_group > 1) write_prefetches();
    if (body_.serial) {
      sweeps_.declare_keeps(body_.before);
      for (const CudaStage& stage : body_.before) sweeps_.write(stage);
      const VarId v = *body_.serial;
      const std::string name = fmt::format("i{}", v);
      if (!body_.ahead.empty()) {
        sweeps_.declare_ahead();
        sweeps_.emitter().names().vars[v] = "team";
        sweeps_.bound |= uint64_t{1} << v;
        out_.open(fmt::format("if (team < {}) {{", body_.pool.indices.extent(v)));
        write_ahead();
        out_.close();
      }
      out_.open(fmt::format("for ({0} {1} = team; {1} < {2}; {1} += {3}) {{", index_type(), name,
                            body_.pool.indices.extent(v), body_.teams()));
      sweeps_.emitter().names().vars[v] = name;
      sweeps_.bound |= uint64_t{1} << v;
      sweeps_.emitter().push_scope();
    }
    sweeps_.declare_keeps(body_.stages);
    if (!body_.serial && body_.turns == 1 && !body_.ahead.empty()) {
      sweeps_.declare_ahead();
      write_ahead();
    }
    if (body_.serial && !body_.ahead.empty()) sweeps_.between = [this] { write_next(*body_.serial); };
    for (const CudaStage& stage : body_.stages) sweeps_.write(stage);
    if (body_.serial) {
      if (memory_.bytes > 0) out_.line("tile::team_sync<{}>();", body_.team);
      sweeps_.emitter().pop_scope();
      sweeps_.bound &= ~(uint64_t{1} << *body_.serial);
      out_.close();
      for (const CudaStage& stage : body_.after) sweeps_.write_after(stage);
    }
  }

  const schedule::KernelDesc& desc_;
  const CudaStitchDesc& body_;
  const Naming* const naming_;
  Writer out_{1};
  CudaSweepWriter sweeps_;
  const schedule::SharedMemory& memory_ = sweeps_.memory;
  const bool marked_;
  bool reads_ahead_ = false;  // a turn's loads are written, not the turn
  bool is_part_ = false;
  std::string block_ = "blockIdx.x", blocks_ = "gridDim.x";
};

}  // namespace

KernelSource emit_cuda_stitch(const schedule::KernelPlan& plan, const CudaStitchDesc& body, bool marked,
                              const Naming* naming) {
  return CudaStitchWriter(plan.desc, body, marked, naming).run(plan);
}

CudaPart emit_cuda_part(const schedule::KernelDesc& desc, const schedule::CudaStitchDesc& body, bool marked) {
  return CudaStitchWriter(desc, body, marked).run_part();
}

}  // namespace heddle::codegen
