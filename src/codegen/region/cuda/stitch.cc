#include "codegen/region/cuda/stitch.h"

#include <algorithm>

#include "base/check.h"
#include "base/divide.h"
#include "codegen/naming.h"
#include "codegen/region/cuda/cached.h"
#include "codegen/region/cuda/iteration.h"
#include "codegen/text/kernel_name.h"
#include "codegen/text/numbers.h"
#include "schedule/region/cuda/mapping.h"

namespace heddle::codegen {
namespace {

// The parameter that says how many iterations there are.
constexpr std::string_view kCount = "iterations";

class CudaStitchWriter {
 public:
  CudaStitchWriter(const schedule::KernelDesc& desc, const CudaStitchDesc& body, bool marked,
                   const Naming* naming = nullptr)
      : desc_(desc), body_(body), naming_(naming), c_(body, out_), iterations_(c_), marked_(marked) {
    if (marked) c_.emitter.mark_numbers();
  }

  CudaPart run_part(int threads) {
    is_part_ = true, block_ = "block", blocks_ = "blocks";
    HEDDLE_CHECK(body_.cta_group == 1, "blocks of a part only cooperate with themselves");
    CudaPart part;
    part.parameters =
        parameters("__restrict__ ") + ", uint8_t* raw_shared, const unsigned block, const unsigned blocks";
    if (marked_) out_.raw(argument_line(kArgumentParameter));
    if (threads > body_.threads) out_.line("if (threadIdx.x >= {}) return;", body_.threads);
    declare_threads();
    declare_scratch();
    write_grid();
    part.includes = {"tile/op/cuda/stitch.h"};
    if (has_moments()) part.includes.emplace_back("tile/op/cuda/moments.h");
    part.body = out_.text(part.includes);
    Writer::add_headers(part.parameters, part.includes);
    for (const schedule::Operand& o : desc_.operands) part.types.push_back(pointer_type(o));
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
      out_.line("tile::cta_group_begin<{}>({});", memory_.barrier_count, c_.shared(memory_.barriers));
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

  std::string parameters(std::string_view restricted) {
    c_.emitter.names().evict_first = body_.evict_first;
    c_.emitter.names().l1_resident = body_.l1_resident;
    std::string text;
    c_.emitter.names().buffers.clear();
    for (size_t i = 0; i < desc_.operands.size(); ++i) {
      const std::string name = operand_name(naming_, desc_, i);
      text += fmt::format("{}{} {}{}", i == 0 ? "" : ", ", pointer_type(desc_.operands[i]), restricted, name);
      c_.emitter.names().buffers.push_back(name);
    }
    if (body_.whole_grid) text += ", uint8_t* counters";
    if (has_count()) text += fmt::format(", const {} {}", c_.index_type(), kCount);
    if (marked_) text += fmt::format(", const int64_t* {}{}", restricted, kArgumentParameter);
    return text;
  }
  // What an early kernel hands on; those of the whole grid are not early.
  std::string names_behind_previous() {
    std::string text;
    for (const std::string& name : c_.emitter.names().buffers) {
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
      c_.emitter.names().buffers.push_back(name);
      offset += (s.elements * static_cast<int64_t>(size_of(s.dtype)) + 15) / 16 * 16;
    }
  }

  // Each team its iterations, several at a time where a thread has little of one.
  void write_grid() {
    const std::string type = c_.index_type();
    const int64_t total = body_.iterations(), teams = body_.serial ? 1 : body_.teams();
    const int64_t units = body_.iterations_at_once();
    const bool loop = body_.walks_grid();
    HEDDLE_CHECK(!loop || body_.cta_group == 1, "what a cta_group hands over is used once");
    const std::string block = body_.cta_group > 1 ? fmt::format("{}({}) / {}", type, block_, body_.cta_group)
                                                  : fmt::format("{}({})", type, block_);
    const std::string start = product(block, units);
    if (body_.serial) declare_carried(c_);
    if (loop) {
      out_.open(fmt::format("for ({0} first = {1}; first < {2}; first += {0}({4}) * {3}) {{", type, start, count(),
                            units, blocks_));
    } else {
      out_.declare(type, "first", start);
    }
    const std::string first = loop || teams > 1 ? "first" : start;
    const bool turns = body_.turns > 1 && !body_.serial;
    if (turns) declare_ahead(c_);
    if (turns) {
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
    if (!body_.ahead.empty()) write_each_turn(total, teams, full, true);
    write_each_turn(total, teams, full, false);
  }
  // `ahead`: the loads of each turn by themselves.
  void write_each_turn(int64_t total, int64_t teams, bool full, bool ahead) {
    if (full || ahead) out_.raw("#pragma unroll");
    out_.open(fmt::format("for (int turn = 0; turn < {}; ++turn) {{", body_.turns));
    c_.emitter.push_scope();
    write_team(total, fmt::format("first + turn * {}{}", teams, teams > 1 ? " + team" : ""), full, ahead);
    c_.emitter.pop_scope();
    // The next turn writes the scratch that slower lanes of the team may still read.
    if (memory_.bytes > 0 && body_.team > 1 && !ahead) out_.line("tile::team_sync<{}>();", body_.team);
    out_.close();
  }

  // The iteration `mine`, if there is one. Warps stay together: in one with fewer iterations than teams all compute,
  // some store.
  void write_team(int64_t total, const std::string& mine, bool full, bool ahead = false) {
    const std::string type = c_.index_type();
    const bool shared_warp = body_.team < body_.lanes && body_.team > 1;
    c_.has_live = !full && shared_warp;
    const bool guarded = !full && !shared_warp;
    std::string iteration = "g";
    if (c_.has_live) {
      out_.line("const bool live = {} < {};", mine, count());
      out_.line("const {} g = live ? {} : {} - 1;", type, mine, count());
    } else if (guarded || grid_dims() > 1) {
      out_.declare(type, "g", mine);
    } else {
      iteration = mine;
    }
    if (guarded) out_.open(fmt::format("if (g < {}) {{", count()));
    iterations_.declare_grid(total, iteration);
    ahead ? iterations_.write_ahead() : iterations_.write_iteration();
    if (guarded) out_.close();
  }

  // Those along which iterations differ.
  int64_t grid_dims() const {
    return std::count_if(body_.grid.begin(), body_.grid.end(),
                         [this](const GridDim& d) { return body_.blocks_of(d) > 1; });
  }

  const schedule::KernelDesc& desc_;
  const CudaStitchDesc& body_;
  const Naming* const naming_;
  Writer out_{1};
  SweepContext c_;
  IterationWriter iterations_;
  const schedule::SharedMemory& memory_ = c_.memory;
  const bool marked_;
  bool is_part_ = false;
  std::string block_ = "blockIdx.x", blocks_ = "gridDim.x";
};

}  // namespace

KernelSource emit_cuda_stitch(const schedule::KernelPlan& plan, const CudaStitchDesc& body, bool marked,
                              const Naming* naming) {
  return CudaStitchWriter(plan.desc, body, marked, naming).run(plan);
}

CudaPart emit_cuda_part(const schedule::KernelDesc& desc, const schedule::CudaStitchDesc& body, int threads,
                        bool marked) {
  return CudaStitchWriter(desc, body, marked).run_part(threads);
}

}  // namespace heddle::codegen
