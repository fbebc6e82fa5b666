#include "codegen/region/cpu/stitch.h"

#include <algorithm>

#include "base/divide.h"
#include "codegen/naming.h"
#include "codegen/region/cpu/reductions.h"
#include "codegen/region/cpu/transpose.h"
#include "codegen/text/kernel_name.h"
#include "codegen/text/numbers.h"
#include "schedule/expr/expr_walk.h"
#include "schedule/region/cost.h"
#include "tile/core/config.h"

namespace heddle::codegen {

using schedule::CpuStitchDesc;

namespace {

// Independent accumulators of a row reduction: they cover the latency of an addition. Bodies that compute much overlap
// by themselves, and every copy of them costs compile time.
constexpr int64_t kUnroll = 4;
constexpr double kHeavyBody = 12;
constexpr int64_t kLongRow = 512;  // elements from which aligning the streamed stores pays for two partial vectors
constexpr int64_t kLineBytes = 64;

// True if lanes are only picked from neighbouring elements (tile::gather_near()): the steps of the loop itself would be
// a large part of its time.
bool picks_neighbours(const schedule::ExprPool& pool, const Stage& stage) {
  const auto is_near = [&](const schedule::Expr& e) { return e.kind == schedule::Expr::Kind::kLoad && e.lo > 0; };
  const auto picks = [&](const Store& s) {
    if (pool[s.value].kind != schedule::Expr::Kind::kLoad) return false;
    bool near = false;
    schedule::visit_exprs(pool, {s.value}, [&](ExprId e) { near = near || is_near(pool[e]); });
    return near;
  };
  return std::all_of(stage.pieces.begin(), stage.pieces.end(), [&](const Piece& piece) {
    return !piece.stores.empty() && std::all_of(piece.stores.begin(), piece.stores.end(), picks);
  });
}

// Two vectors of integers are narrowed to one of 16-bit numbers in fewer instructions than one by one.
bool narrows_to_shorts(const Piece& piece) {
  return std::any_of(piece.stores.begin(), piece.stores.end(),
                     [](const Store& s) { return is_int(s.dtype) && size_of(s.dtype) == 2; });
}

class StitchWriter {
 public:
  StitchWriter(const schedule::KernelDesc& desc, const CpuStitchDesc& body, const schedule::Config& config, bool marked,
               const Naming* naming)
      : desc_(desc), body_(body), config_(config), naming_(naming), c_(body, out_, marked) {}

  CpuFunction run() {
    if (c_.marked) out_.raw(argument_line(argument_array(desc_.operands.size())));
    out_.raw("constexpr int W = tile::kLanes;");
    declare_operands();
    const int64_t scratch_bytes = declare_scratch();
    const int64_t grid = body_.iterations(), tasks = std::clamp<int64_t>(config_.tasks, 1, std::max<int64_t>(grid, 1));
    const bool direct = tasks == grid && !c_.marked;
    const auto bound = [&](const char* end) {
      return direct ? end : fmt::format("{} * {} / {}", end, c_.any_number(grid), c_.any_number(tasks));
    };
    out_.open(fmt::format("for (int64_t g = {}; g < {}; ++g) {{", bound("begin"), bound("end")));
    declare_grid();
    for (const Stage& stage : body_.stages) write_stage(stage);
    out_.close();
    if (c_.streams) out_.raw("tile::finish_stream();");
    CpuFunction function{body_.title};
    KernelSource& source = function.source;
    source.includes = {"tile/op/math.h", "tile/op/arith.h", "tile/op/lanes.h"};
    function.body = out_.text(source.includes);
    source.symbol = kernel_name(body_, !c_.marked);
    if (std::any_of(body_.stages.begin(), body_.stages.end(), [](const Stage& s) { return !s.reductions.empty(); })) {
      source.includes.push_back("tile/op/reduce.h");
    }
    source.tasks = tasks;
    source.scratch_bytes = scratch_bytes;
    return function;
  }

 private:
  void declare_operands() {
    for (size_t i = 0; i < desc_.operands.size(); ++i) {
      const schedule::Operand& o = desc_.operands[i];
      const std::string name = operand_name(naming_, desc_, i);
      out_.line("auto* {} = static_cast<{}>(operands[{}]);  // {}{}", name, pointer_type(o), i, to_string(o.dtype),
                heddle::to_string(o.shape));
      c_.emitter.names().buffers.push_back(name);
    }
  }

  int64_t declare_scratch() {
    int64_t offset = 0;
    for (size_t i = 0; i < body_.scratch.size(); ++i) {
      const schedule::Scratch& s = body_.scratch[i];
      const std::string name = fmt::format("s{}", i);
      out_.line("auto* {} = reinterpret_cast<{}*>({});  // {} elements", name, storage_type(s.dtype),
                sum("static_cast<char*>(scratch)", c_.number(offset)), s.elements);
      c_.emitter.names().buffers.push_back(name);
      offset += round_up(s.elements * static_cast<int64_t>(size_of(s.dtype)), kLineBytes);
    }
    return offset;
  }

  // The variables that an iteration fixes, last grid dimension fastest.
  void declare_grid() {
    int64_t below = 1;
    std::vector<std::pair<std::string, std::string>> variables;
    const int64_t total = body_.iterations();
    for (size_t k = body_.grid.size(); k-- > 0;) {
      const GridDim& d = body_.grid[k];
      const int64_t blocks = body_.blocks_of(d);
      const bool innermost = k + 1 == body_.grid.size();
      const std::string quotient =
          below > 1 || (c_.marked && !innermost) ? fmt::format("g / {}", c_.any_number(below)) : "g";
      const std::string at = blocks == 1 && !c_.marked ? std::string("0")
                             : below * blocks < total || (c_.marked && k > 0)
                                 ? fmt::format("{} % {}", quotient, c_.any_number(blocks))
                                 : quotient;
      const VarId var = d.block > 1 ? d.start : d.var;
      const std::string name = fmt::format("{}{}", d.block > 1 ? 'b' : 'i', d.var);
      c_.emitter.names().vars[var] = name;
      c_.bound |= uint64_t{1} << var;
      const std::string times =
          d.block > 1 && (blocks > 1 || c_.marked) ? fmt::format("{} * ", c_.number(d.block)) : "";
      variables.emplace_back(name, times + (times.empty() ? at : factor(at)));
      below *= blocks;
    }
    for (auto v = variables.rbegin(); v != variables.rend(); ++v) out_.declare("int64_t", v->first, v->second);
  }

  void write_stage(const Stage& stage) {
    for (const Reduction& r : stage.reductions) out_.comment(r.comment);
    c_.hoist(stage);
    c_.unroll = unroll_of(stage);
    c_.long_sums = sums_are_long(stage);
    const uint64_t outside = c_.bound;
    // Scopes of C++ are scopes of the emitter.
    const size_t outer_loops = stage.reductions.empty() ? 0 : stage.kept;
    for (size_t k = 0; k < outer_loops; ++k) {
      const auto [lo, hi] = c_.bounds(stage.loops[k]);
      c_.open_loop(stage.loops[k], lo, hi);
      c_.hoist(stage);
    }
    for (const auto& t : stage.transposed) write_transposed(c_, stage, t);
    if (stage.vertical && !stage.held) reset_columns(c_, stage);
    if (!stage.reductions.empty() && !stage.vertical) declare_accumulators(c_, stage);
    for (const Piece& piece : stage.pieces) {
      if (stage.held) {
        write_held(stage, piece);
      } else {
        write_piece(stage, piece, outer_loops);
      }
    }
    for (const auto& t : stage.transposed_stores) write_transposed(c_, stage, t);
    if (!stage.reductions.empty() && !stage.vertical && !stage.scan) finish_rows(c_, stage);
    for (size_t k = outer_loops; k-- > 0;) c_.close_loop(stage.loops[k]);
    c_.bound = outside;
  }

  int64_t unroll_of(const Stage& stage) const {
    if (stage.reductions.empty() && stage.vector && picks_neighbours(body_.pool, stage)) return kUnroll;
    if (stage.reductions.empty() || !stage.vector || stage.vertical) return 1;
    const auto is_position = [](const Reduction& r) { return is_arg(r.combine); };
    if (std::any_of(stage.reductions.begin(), stage.reductions.end(), is_position)) return 1;
    const double cycles = schedule::varying_cycles(body_.pool, stage.pieces[0].values, stage.loops.back());
    if (c_.marked) return cycles > kHeavyBody ? 2 : kUnroll;
    const int64_t vectors = c_.extent(stage.loops.back()) / config_.as<schedule::LoopConfig>().lanes;
    return std::clamp<int64_t>(cycles > kHeavyBody ? 2 : kUnroll, 1, std::max<int64_t>(vectors, 1));
  }

  // True if each accumulator of a row sums many terms.
  bool sums_are_long(const Stage& stage) const {
    if ((stage.vertical && !stage.held) || stage.scan) return false;
    if (std::none_of(stage.reductions.begin(), stage.reductions.end(), is_float_sum)) return false;
    if (std::any_of(stage.reductions.begin(), stage.reductions.end(), [](const auto& r) { return r.sums_long_sums; }))
      return true;
    int64_t terms = 1;
    const size_t end = stage.loops.size() - (stage.held ? 1 : 0);
    for (size_t k = stage.kept; k < end; ++k) terms *= c_.extent(stage.loops[k]);
    return terms / (stage.vector && !stage.held ? config_.as<schedule::LoopConfig>().lanes * c_.unroll : 1) >
           tile::kLongSum;
  }

  // Columns one vector after another: the reduced loops are short and lie inside the vector loop.
  void write_held(const Stage& stage, const Piece& piece) {
    const uint64_t outside = c_.bound;
    const VarId v = stage.loops.back();
    c_.open_lanes(v, c_.bounds(v, piece.ranges.back()));
    c_.bound |= uint64_t{1} << v;
    declare_accumulators(c_, stage);
    c_.hoist(stage, piece);
    for (size_t k = stage.kept; k + 1 < stage.loops.size(); ++k) {
      c_.open_loop(stage.loops[k], c_.number(piece.ranges[k].lo), c_.number(piece.ranges[k].hi + 1));
      c_.hoist(stage, piece);
    }
    for (size_t k = 0; k < stage.reductions.size(); ++k) {
      combine_rows(c_, stage, piece, k, "tile::index_constant<W>{}", "tile::index_constant<0>{}");
    }
    if (c_.long_sums) out_.raw(settle_sums(stage, "1"));
    store_all(piece);
    for (size_t k = stage.loops.size() - 1; k-- > stage.kept;) c_.close_loop(stage.loops[k]);
    finish_held(c_, stage);
    c_.close_lanes(v);
    c_.bound = outside;
  }

  // The innermost reduced loop in steps of several rows, then row by row.
  void write_rows_together(const Stage& stage, const Piece& piece, int64_t together) {
    const size_t k = stage.loops.size() - 2;
    const VarId row = stage.loops[k], v = stage.loops.back();
    const std::string name = fmt::format("i{}", row);
    const auto [lo, hi] = c_.bounds(row, piece.ranges[k]);
    out_.line("int64_t {} = {};", name, lo);
    for (int64_t rows : {together, int64_t{1}}) {
      const std::string last = rows > 1 ? fmt::format("{} - {}", hi, rows - 1) : hi;
      out_.open(fmt::format("for (; {0} < {1}; {0} += {2}) {{", name, last, rows));
      c_.open_lanes(v, c_.bounds(v, piece.ranges.back()));
      std::vector<std::vector<std::string>> values(stage.reductions.size());
      for (int64_t r = 0; r < rows; ++r) {
        c_.emitter.names().vars[row] = r == 0 ? name : fmt::format("({} + {})", name, r);
        c_.emitter.push_scope();
        for (size_t i = 0; i < stage.reductions.size(); ++i) {
          values[i].push_back(c_.value(piece.values[i], stage.reductions[i].dtype));
        }
        c_.emitter.pop_scope();
      }
      for (size_t i = 0; i < stage.reductions.size(); ++i) {
        // Pairwise: the sums of a few neighbours are as exact as one addition more.
        std::vector<std::string>& list = values[i];
        while (list.size() > 1) {
          std::vector<std::string> half;
          for (size_t p = 0; p < list.size(); p += 2) {
            half.push_back(
                fmt::format("{}::apply({}, {})", combiner(stage.reductions[i].combine), list[p], list[p + 1]));
          }
          list = std::move(half);
        }
        combine_columns(c_, stage.reductions[i], list[0]);
      }
      c_.close_lanes(v);
      c_.emitter.names().vars.erase(row);
      out_.close();
    }
  }

  void write_piece(const Stage& stage, const Piece& piece, size_t from) {
    const uint64_t outside = c_.bound;
    const int64_t together = piece.stores.empty() ? stage.together : 1;
    const size_t lanes = stage.vector ? stage.loops.size() - 1 : stage.loops.size();
    const size_t last = together > 1 ? lanes - 1 : lanes;
    const size_t first = stage.vertical ? stage.kept : from;
    for (size_t k = first; k < last; ++k) {
      const auto [lo, hi] = c_.bounds(stage.loops[k], piece.ranges[k]);
      c_.open_loop(stage.loops[k], lo, hi);
      c_.hoist(stage, piece);
    }
    if (together > 1) {
      out_.open("{");
      write_rows_together(stage, piece, together);
      out_.close();
    } else if (stage.vector) {
      write_lanes(stage, piece);
    } else {
      c_.emitter.push_scope();
      write_body(stage, piece, false);
      c_.emitter.pop_scope();
    }
    for (size_t k = last; k-- > first;) c_.close_loop(stage.loops[k]);
    c_.bound = outside;
  }

  void write_lanes(const Stage& stage, const Piece& piece) {
    const VarId v = stage.loops.back();
    const auto bounds = c_.bounds(v, piece.ranges.back());
    const bool rows = !stage.reductions.empty() && !stage.vertical;
    const bool settles = rows && c_.long_sums;
    const std::string head = rows ? "" : stream_head(piece, v, bounds.first);
    const bool unroll = c_.unroll > 1 && head.empty();
    const bool pairs = stage.reductions.empty() && !unroll && head.empty() && narrows_to_shorts(piece);
    c_.open_lanes(v, bounds, unroll || settles, head, settles ? settle_sums(stage, "k") : "", pairs);
    write_body(stage, piece, unroll);
    c_.close_lanes(v);
  }

  // Streaming stores want alignment: where rows do not have it by themselves, the number of elements up to it.
  std::string stream_head(const Piece& piece, VarId v, const std::string& lo) {
    for (const Store& s : piece.stores) {
      if (!s.stream || schedule::stride_along(body_.pool, s.at, v) != 1) continue;
      if (always_aligned(s, v) || c_.extent(v) < kLongRow) continue;
      c_.emitter.names().vars[v] = lo;
      const std::string at = c_.place(s.buffer, s.at);
      c_.emitter.names().vars.erase(v);
      return fmt::format("tile::to_boundary<W>({})", at);
    }
    return "";
  }

  // Buffers start at a line; whatever the other variables are, the row does too (blocks of v are whole vectors).
  bool always_aligned(const Store& s, VarId v) const {
    const auto size = static_cast<int64_t>(size_of(s.dtype));
    return s.at.constant * size % kLineBytes == 0 &&
           std::all_of(s.at.terms.begin(), s.at.terms.end(), [&, this](const auto& term) {
             const schedule::Atom& atom = body_.pool.indices.atom(term.first);
             return (atom.kind == schedule::Atom::Kind::kVar && atom.id == v) || term.second * size % kLineBytes == 0;
           });
  }

  void write_body(const Stage& stage, const Piece& piece, bool unroll) {
    for (const schedule::Prefetch& p : stage.prefetches) {
      out_.line("__builtin_prefetch({}, 0, {});", c_.place(p.from, p.at), p.near ? 3 : 2);
    }
    for (size_t k = 0; k < stage.reductions.size(); ++k) {
      const Reduction& r = stage.reductions[k];
      if (stage.scan) {
        step_scan(c_, stage, piece);
      } else if (stage.vertical) {
        const std::string value = c_.value(piece.values[k], r.dtype);
        combine_columns(c_, r, value, is_arg(r.combine) ? c_.emitter.vector(piece.positions[k]) : std::string());
      } else {
        combine_rows(c_, stage, piece, k, stage.vector ? "n" : "tile::index_constant<1>{}",
                     unroll ? "u" : "tile::index_constant<0>{}");
      }
    }
    if (c_.long_sums && !stage.vector) out_.raw(settle_sums(stage, "1"));
    store_all(piece);
  }
  void store_all(const Piece& piece) {
    for (const Store& s : piece.stores) {
      c_.emitter.store(c_.buffer(s.buffer), s.dtype, s.at, s.value, s.stream);
      c_.streams = c_.streams || s.stream;
    }
  }

  const schedule::KernelDesc& desc_;
  const CpuStitchDesc& body_;
  const schedule::Config& config_;
  const Naming* const naming_;
  Writer out_{1};
  StitchContext c_;
};

}  // namespace

CpuFunction stitch_function(const schedule::KernelDesc& desc, const CpuStitchDesc& body, const schedule::Config& config,
                            bool marked, const Naming* naming) {
  return StitchWriter(desc, body, config, marked, naming).run();
}

KernelSource emit_cpu_stitch(const schedule::KernelDesc& desc, const CpuStitchDesc& body,
                             const schedule::Config& config, bool marked, const Naming* naming) {
  const CpuFunction function = stitch_function(desc, body, config, marked, naming);
  if (naming == nullptr) return function.kernel(marked);
  KernelSource source = function.source;
  source.symbol = naming->symbol;
  source.text = function.text(kEntry, source.symbol);
  return source;
}

}  // namespace heddle::codegen
