#include "codegen/region/cpu/stitch.h"

#include <algorithm>
#include <set>

#include "base/check.h"
#include "codegen/scalar/scalar.h"
#include "codegen/text/kernel_name.h"
#include "codegen/text/naming.h"
#include "codegen/text/numbers.h"
#include "schedule/region/cost.h"

namespace heddle::codegen {

using schedule::Combine;
using schedule::ExprId;
using schedule::GridDim;
using schedule::Index;
using schedule::Piece;
using schedule::Range;
using schedule::Reduction;
using schedule::Stage;
using schedule::StitchDesc;
using schedule::Store;
using schedule::VarId;

namespace {

// Independent accumulators of a row reduction: they cover the latency of an addition. Bodies that compute much overlap
// by themselves, and every copy of them costs compile time.
constexpr int64_t kUnroll = 4;
constexpr double kHeavyBody = 12;
constexpr int64_t kLongRow = 512;  // elements from which aligning the streamed stores pays for two partial vectors

std::string combiner(Combine c) {
  return fmt::format("tile::{}_of", to_string(c));
}

class StitchWriter {
 public:
  StitchWriter(const schedule::KernelDesc& desc, const StitchDesc& body, const schedule::Config& config, bool marked,
               const Naming* naming)
      : desc_(desc),
        body_(body),
        config_(config),
        marked_(marked),
        naming_(naming),
        emitter_(body.pool, Names{}, out_) {
    if (marked) emitter_.mark_numbers();
  }

  CpuFunction run() {
    if (marked_) out_.raw(argument_line(argument_array(desc_.operands.size())));
    out_.raw("constexpr int W = tile::kLanes;");
    declare_operands();
    const int64_t scratch_bytes = declare_scratch();
    const int64_t grid = body_.iterations(), tasks = std::clamp<int64_t>(config_.tasks, 1, std::max<int64_t>(grid, 1));
    const bool direct = tasks == grid && !marked_;
    const std::string first = direct ? "begin" : fmt::format("begin * {} / {}", any_number(grid), any_number(tasks));
    const std::string last = direct ? "end" : fmt::format("end * {} / {}", any_number(grid), any_number(tasks));
    out_.open(fmt::format("for (int64_t g = {}; g < {}; ++g) {{", first, last));
    declare_grid();
    for (size_t i = 0; i < body_.stages.size(); ++i) write_stage(body_.stages[i]);
    out_.close();
    if (streams_) out_.raw("tile::finish_stream();");
    CpuFunction function{body_.title};
    KernelSource& source = function.source;
    source.includes = {"tile/op/math.h", "tile/op/arith.h", "tile/op/lanes.h"};
    function.body = out_.text(source.includes);
    source.symbol = kernel_name(body_, !marked_);
    if (std::any_of(body_.stages.begin(), body_.stages.end(), [](const Stage& s) { return !s.reductions.empty(); })) {
      source.includes.push_back("tile/op/reduce.h");
    }
    source.tasks = tasks;
    source.scratch_bytes = scratch_bytes;
    return function;
  }

 private:
  std::string number(int64_t value) const { return marked_ ? marked(value) : fmt::format("{}", value); }
  std::string any_number(int64_t value) const { return marked_ ? marked_always(value) : fmt::format("{}", value); }

  void declare_operands() {
    for (size_t i = 0; i < desc_.operands.size(); ++i) {
      const schedule::Operand& o = desc_.operands[i];
      const bool input = o.role == schedule::Operand::Role::kInput;
      const std::string name = naming_ != nullptr ? naming_->operands.at(i) : fmt::format("{}{}", input ? 'x' : 'y', i);
      out_.line("auto* {} = static_cast<{}{}*>(operands[{}]);  // {}{}", name, input ? "const " : "",
                storage_type(o.dtype), i, to_string(o.dtype), heddle::to_string(o.shape));
      emitter_.names().buffers.push_back(name);
    }
  }

  int64_t declare_scratch() {
    int64_t offset = 0;
    for (size_t i = 0; i < body_.scratch.size(); ++i) {
      const schedule::Scratch& s = body_.scratch[i];
      const std::string name = fmt::format("s{}", i);
      out_.line("auto* {} = reinterpret_cast<{}*>({});  // {} elements", name, storage_type(s.dtype),
                sum("static_cast<char*>(scratch)", number(offset)), s.elements);
      emitter_.names().buffers.push_back(name);
      offset += (s.elements * static_cast<int64_t>(size_of(s.dtype)) + 63) / 64 * 64;
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
          below > 1 || (marked_ && !innermost) ? fmt::format("g / {}", any_number(below)) : "g";
      const std::string at = blocks == 1 && !marked_ ? std::string("0")
                             : below * blocks < total || (marked_ && k > 0)
                                 ? fmt::format("{} % {}", quotient, any_number(blocks))
                                 : quotient;
      const VarId var = d.block > 1 ? d.start : d.var;
      const std::string name = fmt::format("{}{}", d.block > 1 ? 'b' : 'i', d.var);
      emitter_.names().vars[var] = name;
      bound_ |= uint64_t{1} << var;
      const std::string times = d.block > 1 && (blocks > 1 || marked_) ? fmt::format("{} * ", number(d.block)) : "";
      variables.emplace_back(name, times + (times.empty() ? at : factor(at)));
      below *= blocks;
    }
    for (auto v = variables.rbegin(); v != variables.rend(); ++v) out_.declare("int64_t", v->first, v->second);
  }

  const GridDim* blocked(VarId v) const {
    for (const GridDim& d : body_.grid) {
      if (d.var == v && d.block > 1) return &d;
    }
    return nullptr;
  }

  // Bounds of a loop: a range of the whole variable, cut to the block that this iteration works on.
  std::pair<std::string, std::string> bounds(VarId v, Range range) const {
    const GridDim* d = blocked(v);
    const int64_t extent = body_.pool.indices.extent(v);
    if (d == nullptr || (body_.blocks_of(*d) == 1 && !marked_)) return {number(range.lo), number(range.hi + 1)};
    const std::string start = fmt::format("b{}", v);
    std::string lo = start, hi = fmt::format("{} + {}", start, number(d->block));
    if (range.lo > 0) lo = fmt::format("tile::larger({}, {})", start, number(range.lo));
    if (marked_ || range.hi + 1 < extent || extent % d->block != 0)
      hi = fmt::format("tile::smaller({}, {})", hi, number(range.hi + 1));
    return {lo, hi};
  }

  std::string loop_name(VarId v) const { return fmt::format("i{}", v); }

  void write_stage(const Stage& stage) {
    for (const Reduction& r : stage.reductions) out_.comment(r.comment);
    hoist(stage, bound_);
    unroll_ = unroll_of(stage);
    const uint64_t outside = bound_;
    // Scopes of C++ are scopes of the emitter.
    size_t open = 0;
    const size_t outer_loops = stage.reductions.empty() ? 0 : stage.kept;
    for (size_t k = 0; k < outer_loops; ++k, ++open) {
      const auto [lo, hi] = bounds(stage.loops[k], {0, body_.pool.indices.extent(stage.loops[k]) - 1});
      open_loop(stage.loops[k], lo, hi);
      hoist(stage, bound_);
    }
    for (const auto& t : stage.transposed) transpose(stage, t);
    if (stage.vertical && !stage.held) reset_columns(stage);
    if (!stage.reductions.empty() && !stage.vertical) declare_accumulators(stage);
    for (const Piece& piece : stage.pieces) {
      if (stage.held) {
        write_held(stage, piece);
      } else {
        write_piece(stage, piece, outer_loops);
      }
    }
    for (const auto& t : stage.transposed_stores) store_rows(stage, t);
    if (!stage.reductions.empty() && !stage.vertical && !stage.scan) finish_rows(stage);
    while (open-- > 0) close_loop(stage.loops[open]);
    bound_ = outside;
  }

  int64_t unroll_of(const Stage& stage) const {
    if (stage.reductions.empty() || !stage.vector || stage.vertical) return 1;
    const double cycles = schedule::varying_cycles(body_.pool, stage.pieces[0].values, stage.loops.back());
    if (marked_) return cycles > kHeavyBody ? 2 : kUnroll;
    const int64_t vectors = body_.pool.indices.extent(stage.loops.back()) / config_.as<schedule::LoopConfig>().lanes;
    return std::clamp<int64_t>(cycles > kHeavyBody ? 2 : kUnroll, 1, std::max<int64_t>(vectors, 1));
  }

  void open_loop(VarId v, const std::string& lo, const std::string& hi) {
    const std::string name = loop_name(v);
    out_.open(fmt::format("for (int64_t {0} = {1}; {0} < {2}; ++{0}) {{", name, lo, hi));
    emitter_.names().vars[v] = name;
    emitter_.push_scope();
    bound_ |= uint64_t{1} << v;
  }
  void close_loop(VarId v) {
    emitter_.pop_scope();
    emitter_.names().vars.erase(v);
    bound_ &= ~(uint64_t{1} << v);
    out_.close();
  }

  // What does not change in the loops to come.
  void hoist(const Stage& stage, uint64_t bound) {
    for (const Piece& piece : stage.pieces) hoist(stage, piece, bound);
  }
  void hoist(const Stage& stage, const Piece& piece, uint64_t bound) {
    for (ExprId e : piece.values) emitter_.hoist(e, bound);
    if (stage.scan) return;  // what is stored is what the step makes
    for (const Store& s : piece.stores) emitter_.hoist(s.value, bound);
  }

  // Short rows between a buffer and scratch, where they are columns.
  void load_rows(const Stage& stage, const schedule::TransposedLoad& t) {
    const VarId v = stage.loops.back();
    const auto& buffers = emitter_.names().buffers;
    const std::string readable = fmt::format("{} - {}", number(body_.pool.indices.extent(v)),
                                             bounds(v, {0, body_.pool.indices.extent(v) - 1}).first);
    if (marked_) {
      out_.line("tile::load_rows_of({}, {}, {}, {} + {}, {}, {});", any_number(body_.pool.indices.extent(t.along)),
                buffers[t.scratch], number(width_of(v)), buffers[t.from], emitter_.index(t.at), number(t.stride),
                count_of(v));
      return;
    }
    out_.line("tile::load_rows<{}>({}, {}, {} + {}, {}, {}, {});", body_.pool.indices.extent(t.along),
              buffers[t.scratch], number(width_of(v)), buffers[t.from], emitter_.index(t.at), number(t.stride),
              count_of(v), readable);
  }
  void store_rows(const Stage& stage, const schedule::TransposedStore& t) {
    const VarId v = stage.loops.back();
    const auto& buffers = emitter_.names().buffers;
    if (marked_) {
      out_.line("tile::store_rows_of({}, {} + {}, {}, {}, {}, {});", any_number(body_.pool.indices.extent(t.along)),
                buffers[t.to], emitter_.index(t.at), number(t.stride), buffers[t.scratch], number(width_of(v)),
                count_of(v));
      return;
    }
    out_.line("tile::store_rows<{}, {}>({} + {}, {}, {}, {}, {});", body_.pool.indices.extent(t.along), t.stream,
              buffers[t.to], emitter_.index(t.at), number(t.stride), buffers[t.scratch], number(width_of(v)),
              count_of(v));
    streams_ = streams_ || t.stream;
  }
  int64_t width_of(VarId v) const {
    const GridDim* d = blocked(v);
    return ((d ? d->block : body_.pool.indices.extent(v)) + 15) / 16 * 16;
  }
  std::string count_of(VarId v) const {
    const int64_t extent = body_.pool.indices.extent(v);
    const auto [lo, hi] = bounds(v, {0, extent - 1});
    if (lo == "0") return hi;
    const int64_t block = blocked(v)->block;
    return !marked_ && extent % block == 0 ? number(block) : fmt::format("{} - {}", hi, lo);
  }

  void transpose(const Stage& stage, const schedule::TransposedLoad& t) {
    if (stage.packed) return load_rows(stage, t);
    const VarId v = stage.loops.back();
    const std::string rows = count_of(t.along), first = bounds(v, {0, body_.pool.indices.extent(v) - 1}).first;
    const GridDim& d = *blocked(v);
    const std::string from = fmt::format("{} + {}", emitter_.names().buffers[t.from], emitter_.index(t.at));
    out_.line("tile::transpose_block({}, {}, {}, {}, {}, {});", emitter_.names().buffers[t.scratch],
              number((d.block + 15) / 16 * 16), from, number(t.stride), rows, count_of(v));
    if (body_.blocks_of(d) > 1) {
      const int64_t extent = body_.pool.indices.extent(v);
      out_.line("tile::prefetch_block({} + {}, {}, {}, tile::smaller({} - {}, {}));", from, number(d.block * t.stride),
                number(t.stride), rows, number(extent - d.block), first, number(d.block));
    }
  }

  // ---- Running results in scratch, one per lane of the vector loop

  void reset_columns(const Stage& stage) {
    const VarId v = stage.loops.back();
    const auto [lo, hi] = bounds(v, {0, body_.pool.indices.extent(v) - 1});
    for (const Reduction& r : stage.reductions) {
      emitter_.names().vars[v] = lo;
      const std::string at = emitter_.index(r.at), count = lo == "0" ? hi : fmt::format("{} - {}", hi, factor(lo));
      emitter_.names().vars.erase(v);
      if (is_arg(r.combine)) {
        out_.line("tile::reset<tile::none_of>({} + {}, {});", emitter_.names().buffers[*r.position_buffer], at, count);
      } else {
        out_.line("tile::reset<{}>({} + {}, {});", combiner(r.combine), emitter_.names().buffers[*r.scratch], at,
                  count);
        if (r.error_buffer) {
          out_.line("tile::reset<tile::sum_of>({} + {}, {});", emitter_.names().buffers[*r.error_buffer], at, count);
        }
      }
    }
  }

  // ---- Running results in registers

  std::string accumulator(size_t k) const { return fmt::format("a{}", k); }

  // Columns one vector after another: the reduced loops are short and lie inside the vector loop.
  void write_held(const Stage& stage, const Piece& piece) {
    const uint64_t outside = bound_;
    const VarId v = stage.loops.back();
    const auto [lo, hi] = bounds(v, piece.ranges.back());
    open_lanes(v, lo, hi);
    bound_ |= uint64_t{1} << v;
    declare_accumulators(stage);
    hoist(stage, piece, bound_);
    for (size_t k = stage.kept; k + 1 < stage.loops.size(); ++k) {
      open_loop(stage.loops[k], number(piece.ranges[k].lo), number(piece.ranges[k].hi + 1));
      hoist(stage, piece, bound_);
    }
    for (size_t k = 0; k < stage.reductions.size(); ++k) {
      const std::string value = number(piece.values[k], stage.reductions[k].dtype);
      const std::string& a = accumulator(stage.reductions[k].local);
      if (is_arg(stage.reductions[k].combine)) {
        out_.line("{}.add({}, {}, tile::index_constant<W>{{}});", a, value, emitter_.vector(piece.positions[k]));
      } else {
        out_.line("{}.add({}, tile::index_constant<W>{{}}, tile::index_constant<0>{{}});", a, value);
      }
    }
    store_all(piece);
    for (size_t k = stage.loops.size() - 1; k-- > stage.kept;) close_loop(stage.loops[k]);
    for (const Reduction& r : stage.reductions) {
      const bool arg = is_arg(r.combine);
      out_.line("tile::put({} + {}, {}, n);", emitter_.names().buffers[arg ? *r.position_buffer : *r.scratch],
                emitter_.index(r.at),
                arg ? fmt::format("tile::convert<int64_t>({}.where)", accumulator(r.local))
                    : fmt::format("{}.part[0]", accumulator(r.local)));
    }
    close_lanes(v);
    bound_ = outside;
  }

  void declare_accumulators(const Stage& stage) {
    const std::string width = stage.vector ? "W" : "1";
    for (size_t k = 0; k < stage.reductions.size(); ++k) {
      const Reduction& r = stage.reductions[k];
      if (is_arg(r.combine)) {
        out_.line("tile::arg_accumulator<{}, {}, {}, {}, {}> {};", r.combine == Combine::kArgMax, r.last,
                  computed_type(r.dtype), computed_type(body_.pool[stage.pieces[0].positions[k]].dtype), width,
                  accumulator(r.local));
      } else {
        out_.line("tile::accumulator<{}, {}, {}, {}> {};", combiner(r.combine), computed_type(r.dtype), width,
                  stage.vector ? unroll_ : 1, accumulator(r.local));
      }
    }
  }

  void finish_rows(const Stage& stage) {
    for (const Reduction& r : stage.reductions) {
      const DType dtype = is_arg(r.combine) ? DType::kI64 : r.dtype;
      if (r.scratch) {
        const uint32_t buffer = is_arg(r.combine) ? *r.position_buffer : *r.scratch;
        out_.line("tile::store({} + {}, {}.result());", emitter_.names().buffers[buffer], emitter_.index(r.at),
                  accumulator(r.local));
        continue;
      }
      const std::string name = fmt::format("{}{}", to_string(r.combine), r.local);
      if (dtype == DType::kBool) {
        out_.line("const auto {} = tile::to_mask({}.result());", name, accumulator(r.local));
      } else {
        out_.line("const auto {} = {}.result();", name, accumulator(r.local));
      }
      emitter_.names().locals[r.local] = {name, dtype, false, dtype == DType::kBool ? 1 : 0};
    }
  }

  // ---- Loops

  // The innermost reduced loop in steps of several rows, then row by row.
  void write_rows_together(const Stage& stage, const Piece& piece, int64_t together) {
    const size_t k = stage.loops.size() - 2;
    const VarId row = stage.loops[k], v = stage.loops.back();
    const std::string name = loop_name(row);
    const auto [lo, hi] = bounds(row, piece.ranges[k]);
    const auto [begin, end] = bounds(v, piece.ranges.back());
    out_.raw(fmt::format("int64_t {} = {};", name, lo));
    for (int64_t rows : {together, int64_t{1}}) {
      const std::string last = rows > 1 ? fmt::format("{} - {}", hi, rows - 1) : hi;
      out_.open(fmt::format("for (; {0} < {1}; {0} += {2}) {{", name, last, rows));
      open_lanes(v, begin, end);
      std::vector<std::vector<std::string>> values(stage.reductions.size());
      for (int64_t r = 0; r < rows; ++r) {
        emitter_.names().vars[row] = r == 0 ? name : fmt::format("({} + {})", name, r);
        emitter_.push_scope();
        for (size_t i = 0; i < stage.reductions.size(); ++i) {
          values[i].push_back(number(piece.values[i], stage.reductions[i].dtype));
        }
        emitter_.pop_scope();
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
        combine_columns(stage.reductions[i], list[0]);
      }
      close_lanes(v);
      emitter_.names().vars.erase(row);
      out_.close();
    }
  }

  void write_piece(const Stage& stage, const Piece& piece, size_t from) {
    const uint64_t outside = bound_;
    const int64_t together = piece.stores.empty() ? stage.together : 1;
    const size_t lanes = stage.vector ? stage.loops.size() - 1 : stage.loops.size();
    const size_t last = together > 1 ? lanes - 1 : lanes;
    const size_t first = stage.vertical ? stage.kept : from;
    for (size_t k = first; k < last; ++k) {
      const auto [lo, hi] = bounds(stage.loops[k], piece.ranges[k]);
      open_loop(stage.loops[k], lo, hi);
      hoist(stage, piece, bound_);
    }
    if (together > 1) {
      out_.open("{");
      write_rows_together(stage, piece, together);
      out_.close();
    } else if (stage.vector) {
      write_lanes(stage, piece);
    } else {
      emitter_.push_scope();
      write_body(stage, piece, false);
      emitter_.pop_scope();
    }
    for (size_t k = last; k-- > first;) close_loop(stage.loops[k]);
    bound_ = outside;
  }

  void write_lanes(const Stage& stage, const Piece& piece) {
    const VarId v = stage.loops.back();
    const auto [lo, hi] = bounds(v, piece.ranges.back());
    const bool rows = !stage.reductions.empty() && !stage.vertical;
    const bool unroll = rows && unroll_ > 1 &&
                        std::none_of(stage.reductions.begin(), stage.reductions.end(),
                                     [](const Reduction& r) { return is_arg(r.combine); });
    open_lanes(v, lo, hi, unroll, rows ? "" : stream_head(piece, v, lo));
    write_body(stage, piece, unroll);
    close_lanes(v);
  }

  // Streaming stores want alignment: where rows do not have it by themselves, the number of elements up to it.
  std::string stream_head(const Piece& piece, VarId v, const std::string& lo) {
    for (const Store& s : piece.stores) {
      if (!s.stream || schedule::stride_along(body_.pool, s.at, v) != 1) continue;
      if (always_aligned(s, v) || body_.pool.indices.extent(v) < kLongRow) continue;
      emitter_.names().vars[v] = lo;
      const std::string at = emitter_.index(s.at);
      emitter_.names().vars.erase(v);
      return fmt::format("tile::to_boundary<W>({} + {})", emitter_.names().buffers[s.buffer], at);
    }
    return "";
  }

  // Buffers start at a line; whatever the other variables are, the row does too (blocks of v are whole vectors).
  bool always_aligned(const Store& s, VarId v) const {
    const auto size = static_cast<int64_t>(size_of(s.dtype));
    return s.at.constant * size % 64 == 0 &&
           std::all_of(s.at.terms.begin(), s.at.terms.end(), [&, this](const auto& term) {
             const schedule::Atom& atom = body_.pool.indices.atom(term.first);
             return (atom.kind == schedule::Atom::Kind::kVar && atom.id == v) || term.second * size % 64 == 0;
           });
  }

  void open_lanes(VarId v, const std::string& lo, const std::string& hi, bool unroll = false,
                  const std::string& head = "") {
    const std::string walk = unroll ? fmt::format("_unrolled<W, {}>", unroll_) : head.empty() ? "<W>" : "_from<W>";
    out_.open(
        fmt::format("tile::for_lanes{}({}{}, {}, [&]<int W>(int64_t {}, auto n{}) __attribute__((always_inline)) {{",
                    walk, head.empty() ? "" : head + ", ", lo, hi, loop_name(v), unroll ? ", auto u" : ""));
    emitter_.names().vars[v] = loop_name(v);
    emitter_.set_lanes(Lanes{v, "W", "n"});
    emitter_.push_scope();
  }
  void close_lanes(VarId v) {
    emitter_.pop_scope();
    emitter_.set_lanes(std::nullopt);
    emitter_.names().vars.erase(v);
    out_.close("});");
  }

  void write_body(const Stage& stage, const Piece& piece, bool unroll) {
    for (const schedule::Prefetch& p : stage.prefetches) {
      out_.line("__builtin_prefetch({} + {}, 0, {});", emitter_.names().buffers[p.from], emitter_.index(p.at),
                p.near ? 3 : 2);
    }
    for (size_t k = 0; k < stage.reductions.size(); ++k) {
      if (stage.scan) {
        step_scan(stage, piece, k);
      } else if (stage.vertical) {
        const Reduction& r = stage.reductions[k];
        combine_columns(r, number(piece.values[k], r.dtype),
                        is_arg(r.combine) ? emitter_.vector(piece.positions[k]) : std::string());
      } else {
        combine_rows(stage, piece, k, unroll);
      }
    }
    store_all(piece);
  }
  void store_all(const Piece& piece) {
    for (const Store& s : piece.stores) {
      emitter_.store(emitter_.names().buffers[s.buffer], s.dtype, s.at, s.value, s.stream);
      streams_ = streams_ || s.stream;
    }
  }

  // A value as numbers: reductions of bool work on 0 and 1.
  std::string number(ExprId e, DType dtype) {
    const std::string text = emitter_.vector(e);
    return dtype == DType::kBool ? fmt::format("tile::from_mask<uint8_t>({})", text) : text;
  }

  // One step of a scan: the running result before or after it is what the stores see.
  void step_scan(const Stage& stage, const Piece& piece, size_t k) {
    const Reduction& r = stage.reductions[k];
    const std::string value = number(piece.values[k], r.dtype), before = fmt::format("c{}", r.local);
    const std::string after = fmt::format("d{}", r.local);
    if (stage.vertical) {
      const std::string p = fmt::format("{} + {}", emitter_.names().buffers[*r.scratch], emitter_.index(r.at));
      out_.line("const auto {} = tile::fetch<W>({}, n);", before, p);
      out_.line("const auto {} = {}::apply({}, {});", after, combiner(r.combine), before, value);
      out_.line("tile::put({}, {}, n);", p, after);
    } else {
      out_.line("const auto {} = {}.result();", before, accumulator(r.local));
      out_.line("{}.add({}, tile::index_constant<1>{{}}, tile::index_constant<0>{{}});", accumulator(r.local), value);
      out_.line("const auto {} = {}.result();", after, accumulator(r.local));
    }
    emitter_.names().locals[r.local] = {stage.scan->exclusive ? before : after, r.dtype, stage.vertical};
  }

  void combine_rows(const Stage& stage, const Piece& piece, size_t k, bool unroll) {
    const Reduction& r = stage.reductions[k];
    const std::string value = number(piece.values[k], r.dtype);
    const std::string count = stage.vector ? "n" : "tile::index_constant<1>{}";
    if (is_arg(r.combine)) {
      out_.line("{}.add({}, {}, {});", accumulator(r.local), value, emitter_.vector(piece.positions[k]), count);
    } else {
      out_.line("{}.add({}, {}, {});", accumulator(r.local), value, count, unroll ? "u" : "tile::index_constant<0>{}");
    }
  }

  void combine_columns(const Reduction& r, const std::string& value, const std::string& position = "") {
    const auto& buffers = emitter_.names().buffers;
    const std::string at = emitter_.index(r.at);
    if (is_arg(r.combine)) {
      out_.line("tile::arg_columns<{}, {}, W>({} + {}, {} + {}, {}, tile::convert<int64_t>({}), n);",
                r.combine == Combine::kArgMax, r.last, buffers[*r.scratch], at, buffers[*r.position_buffer], at, value,
                position);
      return;
    }
    const std::string p = fmt::format("{} + {}", buffers[*r.scratch], at);
    if (r.error_buffer) {
      out_.line("tile::add_compensated({}, {} + {}, {}, n);", p, buffers[*r.error_buffer], at, value);
      return;
    }
    out_.line("tile::put({0}, {1}::apply(tile::fetch<W>({0}, n), {2}), n);", p, combiner(r.combine), value);
  }

  const schedule::KernelDesc& desc_;
  const StitchDesc& body_;
  const schedule::Config& config_;
  const bool marked_;
  const Naming* const naming_;
  Writer out_{1};
  ScalarEmitter emitter_;
  uint64_t bound_ = 0;
  bool streams_ = false;
  int64_t unroll_ = 1;
};

}  // namespace

CpuFunction stitch_function(const schedule::KernelDesc& desc, const StitchDesc& body, const schedule::Config& config,
                            bool marked, const Naming* naming) {
  return StitchWriter(desc, body, config, marked, naming).run();
}

KernelSource emit_stitch(const schedule::KernelDesc& desc, const StitchDesc& body, const schedule::Config& config,
                         bool marked, const Naming* naming) {
  const CpuFunction function = stitch_function(desc, body, config, marked, naming);
  if (naming == nullptr) return function.kernel(marked);
  KernelSource source = function.source;
  source.symbol = naming->symbol;
  source.text = function.text(kEntry, source.symbol);
  return source;
}

}  // namespace heddle::codegen
