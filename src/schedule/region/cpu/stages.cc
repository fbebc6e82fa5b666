#include <algorithm>
#include <bit>

#include "base/check.h"
#include "schedule/expr/expr_walk.h"
#include "schedule/region/kernel.h"
#include "schedule/region/pieces.h"

namespace heddle::schedule {
namespace {

constexpr double kWorthStoring = 6;  // cycles above which a value is stored rather than computed twice
constexpr int kWorthSpreading = 4;   // how often a costly value must be used per computation to get a stage of its own

constexpr int64_t kHeldVolume = 64;  // reduced elements up to which a column is walked at once, in registers
constexpr int64_t kRowsTogether = 4;
constexpr int64_t kPageBytes = 4096;
constexpr double kLightBody = 12;     // cycles of a step up to which its text may be repeated
constexpr int64_t kHeldStreams = 8;   // the same where the rows lie far apart
constexpr int64_t kLongColumn = 128;  // additions in a row after which a running sum is compensated

// A stage while it is put together: expressions still over whole loops.
struct Draft {
  int level = 0;
  uint64_t loops = 0, kept = 0;
  std::vector<size_t> sites;
  std::vector<Store> stores;
  std::vector<ExprId> values, positions;  // one per instance
  std::optional<Stage::Scan> scan;
};

class StageBuilder {
 public:
  StageBuilder(KernelExprs& exprs, const ir::Graph& graph, const Mapping& mapping, const CpuTarget& cpu,
               const StitchOptions& options)
      : exprs_(exprs), pool_(exprs.pool), graph_(graph), mapping_(mapping), cpu_(cpu), options_(options) {}

  std::shared_ptr<StitchDesc> run() {
    first_scratch_ = static_cast<uint32_t>(exprs_.inputs.size() + exprs_.roots.size());
    place_results();
    draft_reductions();
    draft_stores();
    std::stable_sort(drafts_.begin(), drafts_.end(), [](const Draft& a, const Draft& b) {
      return std::pair(a.level, a.sites.empty()) < std::pair(b.level, b.sites.empty());
    });
    if (options_.data_reuse) {
      spread_columns();
      share_between_stages();
    }
    stream_large_outputs();
    auto desc = std::make_shared<StitchDesc>();
    for (Draft& draft : drafts_) desc->stages.push_back(finish(draft));
    prefetch_next(desc->stages);
    desc->grid = mapping_.grid;
    desc->scratch = std::move(scratch_);
    desc->schemes = std::move(schemes_);
    desc->pool = std::move(pool_);
    return desc;
  }

 private:
  uint64_t inner(uint64_t vars) const {
    uint64_t loops = 0;
    for (VarId v = 0; v < 64; ++v) {
      if ((vars >> v & 1) && mapping_.is_inner(v) && !is_start(v)) loops |= uint64_t{1} << v;
    }
    return loops;
  }
  bool is_start(VarId v) const {
    return std::any_of(mapping_.grid.begin(), mapping_.grid.end(),
                       [&](const GridDim& d) { return d.block > 1 && d.start == v; });
  }
  const GridDim* blocked(VarId v) const {
    for (const GridDim& d : mapping_.grid) {
      if (d.var == v && d.block > 1) return &d;
    }
    return nullptr;
  }
  int64_t loop_extent(VarId v) const {
    const GridDim* d = blocked(v);
    return d ? d->block : pool_.indices.extent(v);
  }
  int64_t loop_volume(uint64_t loops) const {
    int64_t n = 1;
    for (VarId v = 0; v < 64; ++v) {
      if (loops >> v & 1) n *= loop_extent(v);
    }
    return n;
  }

  // Loops in order, the vector variable last.
  std::vector<VarId> ordered(uint64_t loops, std::optional<VarId> last) const {
    std::vector<VarId> r;
    for (VarId v = 0; v < 64; ++v) {
      if ((loops >> v & 1) && v != last) r.push_back(v);
    }
    if (last && (loops >> *last & 1)) r.push_back(*last);
    return r;
  }

  // Position in a scratch buffer over some inner loops; block-relative, the kernel's vector variable with unit stride.
  Index scratch_position(uint64_t loops) {
    Index at;
    int64_t stride = 1;
    const std::vector<VarId> vars = ordered(loops, mapping_.vector);
    for (size_t i = vars.size(); i-- > 0;) {
      Index v = pool_.indices.var(vars[i]);
      if (const GridDim* d = blocked(vars[i])) {
        v = pool_.indices.add(v, pool_.indices.scale(pool_.indices.var(d->start), -1));
      }
      at = pool_.indices.add(at, pool_.indices.scale(v, stride));
      stride *= loop_extent(vars[i]);
    }
    return at;
  }

  uint32_t new_scratch(DType dtype, int64_t elements) {
    scratch_.push_back({compute_dtype(dtype), elements});
    return first_scratch_ + static_cast<uint32_t>(scratch_.size()) - 1;
  }

  std::string name_of(const ReductionSite& i) const {
    std::string text = std::string(to_string(combine_of(*i.node)));
    if (!i.node->origins.empty()) text += " of " + graph_.origin(i.node->origins[0]).op_type;
    return text;
  }

  // Results that vary within a grid iteration lie in scratch; the others are locals.
  void place_results() {
    results_.resize(exprs_.sites.size());
    for (size_t k = 0; k < exprs_.sites.size(); ++k) {
      const ReductionSite& i = exprs_.sites[k];
      const uint64_t loops = inner(i.kept);
      const DType result = graph_.dtype(i.value);
      Reduction& r = results_[k];
      r.combine = combine_of(*i.node);
      r.dtype = pool_[i.operand].dtype;
      r.local = i.local;
      r.comment = name_of(i);
      r.last = i.node->op == ir::Op::kArgReduce && i.node->attrs.flag("last");
      schemes_.push_back({name_of(i), loops == 0 ? Scheme::kLocal : Scheme::kRegional, true,
                          loops == 0 ? "one value per iteration of the grid"
                                     : fmt::format("{} values within an iteration", loop_volume(loops))});
      if (loops == 0) continue;
      r.at = scratch_position(loops);
      r.scratch = new_scratch(is_arg(r.combine) ? r.dtype : result, loop_volume(loops));
      uint32_t holds = *r.scratch;
      // One running sum over a whole column loses digits that E[x^2] - E[x]^2 then needs; along a row there are many.
      const bool vertical = mapping_.vector && (loops >> *mapping_.vector & 1);
      const bool is_long = exprs_.volume(i.reduced) > kLongColumn;
      if (vertical && is_long && i.node->op == ir::Op::kReduce && r.combine == Combine::kSum && is_float(r.dtype)) {
        r.error_buffer = new_scratch(result, loop_volume(loops));
      }
      if (is_arg(r.combine)) holds = *(r.position_buffer = new_scratch(DType::kI64, loop_volume(loops)));
      if (i.node->op == ir::Op::kScan) continue;  // its steps are stored, not its end
      const ExprId local = pool_.local(result, i.local, i.position);
      in_scratch_[local] = pool_.load(compute_dtype(result), holds, r.at);
    }
  }

  ExprId resolve(ExprId e) { return in_scratch_.empty() ? e : pool_.substitute(e, {}, in_scratch_); }

  void draft_reductions() {
    for (size_t k = 0; k < exprs_.sites.size(); ++k) {
      const ReductionSite& i = exprs_.sites[k];
      const uint64_t kept = inner(i.kept), loops = kept | inner(i.reduced);
      auto draft = std::find_if(drafts_.begin(), drafts_.end(), [&](const Draft& d) {
        return options_.dominant_merging && d.level == i.level && d.loops == loops && d.kept == kept;
      });
      if (draft == drafts_.end()) {
        draft = drafts_.insert(draft, Draft{});
        draft->level = i.level;
        draft->loops = loops;
        draft->kept = kept;
      }
      draft->sites.push_back(k);
      if (i.node->op == ir::Op::kScan) draft->scan = {i.node->attrs.flag("exclusive"), i.node->attrs.flag("reverse")};
      draft->values.push_back(resolve(i.operand));
      draft->positions.push_back(is_arg(results_[k].combine) ? resolve(i.along) : 0);
    }
  }

  int level_of(ExprId e) const {
    int level = 0;
    exprs_.visit(e, [&](ExprId id) {
      if (pool_[id].kind == Expr::Kind::kLocal) level = std::max(level, exprs_.sites[pool_[id].id].level + 1);
    });
    return level;
  }

  void draft_stores() {
    for (size_t k = 0; k < exprs_.roots.size(); ++k) {
      const Root& root = exprs_.roots[k];
      uint64_t vars = 0;
      for (VarId v : root.vars) vars |= uint64_t{1} << v;
      const uint64_t loops = inner(vars);
      const int level = level_of(root.expr);
      const Store store{static_cast<uint32_t>(exprs_.inputs.size() + k), graph_.dtype(root.value), root.at,
                        resolve(root.expr), false};
      // The first sweep over the same points that comes late enough takes the store along.
      Draft* best = nullptr;
      for (Draft& d : drafts_) {
        if (d.scan) best = &d;  // alone in its kernel
        if (!options_.dominant_merging) continue;
        if (d.loops == loops && d.level >= level && (best == nullptr || d.level < best->level)) best = &d;
      }
      if (best == nullptr) {
        best = &drafts_.emplace_back();
        best->level = level;
        best->loops = best->kept = loops;
      }
      best->stores.push_back(store);
    }
  }

  std::vector<ExprId> roots_of(const Draft& d) const {
    std::vector<ExprId> roots = d.values;
    for (const Store& s : d.stores) roots.push_back(s.value);
    return roots;
  }
  void replace(Draft& d, const std::map<ExprId, ExprId>& with) {
    for (ExprId& e : d.values) e = pool_.substitute(e, {}, with);
    for (Store& s : d.stores) s.value = pool_.substitute(s.value, {}, with);
  }

  double cycles(ExprId e) {
    const auto [at, is_new] = cycles_.try_emplace(e, 0);
    if (is_new) at->second = expr_cycles(exprs_, e);
    return cycles_[e];
  }

  bool fits_scratch(int64_t elements, DType dtype) const {
    int64_t bytes = elements * static_cast<int64_t>(size_of(compute_dtype(dtype)));
    for (const Scratch& s : scratch_) bytes += s.elements * static_cast<int64_t>(size_of(s.dtype));
    return bytes <= cpu_.l2_bytes * 3 / 4;
  }

  std::string text_of(ExprId e) const {
    const std::string* text = pool_.description(e);
    return text ? *text : "a load";
  }

  // Costly values that vary along fewer loops than the stage that uses them (rsqrt of a column's variance) get a stage.
  void spread_columns() {
    std::vector<Draft> result;
    for (size_t k = 0; k < drafts_.size(); ++k) {
      const uint64_t loops = drafts_[k].loops;
      const std::optional<VarId> vector = vector_of(drafts_[k]);
      const auto take = [&](ExprId e) {
        const uint64_t own = inner(pool_.vars(e));
        return pool_[e].kind == Expr::Kind::kOp && own != loops && vector && (own >> *vector & 1) &&
               loop_volume(loops) >= kWorthSpreading * loop_volume(own) && cycles(e) >= kWorthStoring &&
               fits_scratch(loop_volume(own), pool_[e].dtype);
      };
      for (ExprId e : topmost(pool_, roots_of(drafts_[k]), take)) {
        const uint64_t own = inner(pool_.vars(e));
        const uint32_t buffer = new_scratch(pool_[e].dtype, loop_volume(own));
        const Index at = scratch_position(own);
        schemes_.push_back({text_of(e), Scheme::kRegional, false,
                            fmt::format("costs {:.0f} cycles and is used {} times", cycles(e),
                                        loop_volume(loops) / loop_volume(own))});
        Draft* stage = nullptr;
        for (Draft& d : result) {
          if (d.level == drafts_[k].level && d.loops == own && d.sites.empty()) stage = &d;
        }
        if (stage == nullptr) {
          stage = &result.emplace_back();
          stage->level = drafts_[k].level;
          stage->loops = stage->kept = own;
        }
        stage->stores.push_back({buffer, scratch_.back().dtype, at, e, false});
        const std::map<ExprId, ExprId> with = {{e, pool_.load(scratch_.back().dtype, buffer, at)}};
        for (size_t later = k; later < drafts_.size(); ++later) replace(drafts_[later], with);
      }
      result.push_back(std::move(drafts_[k]));
    }
    drafts_ = std::move(result);
  }

  // Costly values that a later stage computes again at the same points are stored by the first.
  void share_between_stages() {
    for (size_t first = 0; first + 1 < drafts_.size(); ++first) {
      const std::vector<ExprId> made = unconditional(pool_, roots_of(drafts_[first]));
      const uint64_t loops = drafts_[first].loops;
      std::vector<ExprId> roots;
      for (size_t later = first + 1; later < drafts_.size(); ++later) {
        const std::vector<ExprId> own = roots_of(drafts_[later]);
        roots.insert(roots.end(), own.begin(), own.end());
      }
      const auto take = [&](ExprId e) {
        const Expr::Kind kind = pool_[e].kind;
        return std::binary_search(made.begin(), made.end(), e) &&
               (kind == Expr::Kind::kOp || kind == Expr::Kind::kLoad) && inner(pool_.vars(e)) == loops && loops != 0 &&
               cycles(e) >= kWorthStoring;
      };
      for (ExprId e : topmost(pool_, roots, take)) share(first, e, loops);
    }
  }

  void share(size_t first, ExprId e, uint64_t loops) {
    const DType dtype = compute_dtype(pool_[e].dtype);
    ExprId loaded = 0;
    // Where the value is an output, the output itself is the place.
    const auto output = std::find_if(drafts_[first].stores.begin(), drafts_[first].stores.end(),
                                     [&](const Store& s) { return s.value == e && s.dtype == dtype; });
    if (output != drafts_[first].stores.end()) {
      loaded = pool_.load(dtype, output->buffer, output->at);
    } else if (!fits_scratch(loop_volume(loops), dtype)) {
      schemes_.push_back({text_of(e), Scheme::kIndependent, false,
                          fmt::format("computed in each stage: {} values do not fit the scratch", loop_volume(loops))});
      return;
    } else {
      const uint32_t buffer = new_scratch(dtype, loop_volume(loops));
      const Index at = scratch_position(loops);
      drafts_[first].stores.push_back({buffer, dtype, at, e, false});
      loaded = pool_.load(dtype, buffer, at);
    }
    schemes_.push_back({text_of(e), Scheme::kRegional, false,
                        fmt::format("costs {:.0f} cycles and several stages read it", cycles(e))});
    for (size_t later = first + 1; later < drafts_.size(); ++later) replace(drafts_[later], {{e, loaded}});
  }

  void stream_large_outputs() {
    std::set<uint32_t> read;
    for (const Draft& d : drafts_) {
      for (ExprId root : roots_of(d)) {
        exprs_.visit(root, [&](ExprId e) {
          if (pool_[e].kind == Expr::Kind::kLoad) read.insert(pool_[e].id);
        });
      }
    }
    for (Draft& d : drafts_) {
      for (Store& s : d.stores) {
        if (s.buffer >= first_scratch_ || read.count(s.buffer) != 0) continue;
        const ir::ValueId root = exprs_.roots[s.buffer - exprs_.inputs.size()].value;
        const int64_t bytes = element_count(graph_.shape(root)) * static_cast<int64_t>(size_of(s.dtype));
        s.stream = bytes > cached_bytes(cpu_);
      }
    }
  }

  // Where an iteration reads from memory first and computes on it in later stages, memory would idle meanwhile.
  void prefetch_next(std::vector<Stage>& stages) {
    if (stages.size() < 2 || mapping_.packed || mapping_.grid.empty() || !stages[0].vector) return;
    const GridDim& fastest = mapping_.grid.back();
    const VarId step = fastest.block > 1 ? fastest.start : fastest.var;
    Stage& first = stages[0];
    const VarId lanes = first.loops.back();
    std::set<ExprId> seen;
    for (ExprId root : first.pieces[0].values) {
      exprs_.visit(root, [&](ExprId e) {
        const Expr& load = pool_[e];
        if (load.kind != Expr::Kind::kLoad || load.id >= exprs_.inputs.size() || !seen.insert(e).second) return;
        const InputOperand& leaf = exprs_.inputs[load.id];
        const auto size = static_cast<int64_t>(size_of(leaf.dtype));
        const auto stride = stride_along(pool_, load.index, step);
        if (stride_along(pool_, load.index, lanes) != 1 || !stride || *stride <= 0) return;
        const int64_t bytes = loop_volume(inner(pool_.vars(load.index))) * size;
        if (element_count(leaf.shape) * size <= cpu_.l2_bytes || bytes > cpu_.l2_bytes / 4) return;
        const int64_t distance = *stride * fastest.block;
        first.prefetches.push_back({load.id, pool_.indices.offset(load.index, distance), bytes <= cpu_.l1_bytes / 4});
      });
    }
  }

  // The loop along which most of a stage's accesses have unit stride.
  std::optional<VarId> vector_of(const Draft& d) const {
    if (d.loops == 0) return std::nullopt;
    std::map<VarId, int> votes;
    const auto vote = [&](const Index& index, int weight) {
      for (VarId v = 0; v < 64; ++v) {
        if ((d.loops >> v & 1) && loop_extent(v) > 1 && stride_along(pool_, index, v) == 1) votes[v] += weight;
      }
    };
    std::set<ExprId> seen;
    for (ExprId root : roots_of(d)) {
      exprs_.visit(root, [&](ExprId e) {
        if (pool_[e].kind == Expr::Kind::kLoad && seen.insert(e).second) vote(pool_[e].index, 2);
      });
    }
    for (const Store& s : d.stores) vote(s.at, 3);
    // Kept results lie in scratch, next to each other along one variable only.
    const std::vector<VarId> kept = ordered(d.kept, mapping_.vector);
    for (VarId v : kept) {
      if (!d.sites.empty() && v != kept.back()) votes.erase(v);
    }
    const auto allowed = [&](VarId v) { return d.sites.empty() || !(d.kept >> v & 1) || v == kept.back(); };
    std::optional<VarId> best;
    if (mapping_.vector && (d.loops >> *mapping_.vector & 1)) best = mapping_.vector;
    // A transposing kernel keeps its block shape.
    if (mapping_.transposed && best) return best;
    for (const auto& [v, n] : votes) {
      if (!best || n > votes[*best]) best = v;
    }
    if (best) return best;
    for (VarId v = 0; v < 64; ++v) {
      if ((d.loops >> v & 1) && loop_extent(v) > 1 && allowed(v)) best = v;
    }
    return best;
  }

  Stage finish(Draft& d) {
    Stage stage;
    std::optional<VarId> vector = vector_of(d);
    stage.scan = d.scan;
    if (d.scan) vector = mapping_.vector && (d.kept >> *mapping_.vector & 1) ? mapping_.vector : std::nullopt;
    stage.vector = vector.has_value();
    stage.vertical = vector && (d.kept >> *vector & 1) && !d.sites.empty();
    const uint64_t last = vector ? uint64_t{1} << *vector : 0;
    stage.loops = ordered(d.kept & ~last, std::nullopt);
    stage.kept = stage.loops.size();
    for (VarId v : ordered(d.loops & ~d.kept & ~last, std::nullopt)) stage.loops.push_back(v);
    if (vector) stage.loops.push_back(*vector);
    if (d.sites.empty()) stage.kept = stage.loops.size();
    for (size_t k : d.sites) stage.reductions.push_back(results_[k]);
    stage.packed = mapping_.packed;
    // What a block of packed rows computes with one value per row is computed once, outside the loop along the row.
    const bool packed = mapping_.packed && d.sites.empty() && vector == mapping_.vector;
    if (packed) stage.kept = 0;
    const int64_t reduced = loop_volume(d.loops & ~d.kept);
    const bool near = reduced <= kHeldVolume && loop_volume(d.loops) * 4 <= cpu_.l2_bytes / 2;
    stage.held = packed || (stage.vertical && !d.scan && (mapping_.packed || near || reduced <= kHeldStreams));
    if (mapping_.packed) {
      transpose_packed(d, stage);
    } else {
      transpose_loads(d, stage);
    }
    Piece whole;
    for (VarId v : stage.loops) whole.ranges.push_back({0, pool_.indices.extent(v) - 1});
    whole.values = d.values;
    whole.positions = d.positions;
    whole.stores = d.stores;
    stage.together = rows_together(stage, whole);
    stage.pieces = cut_pieces(pool_, stage, std::move(whole));
    return stage;
  }

  // Several long rows at once spare most of the traffic to the running results. Short ones are better read in order:
  // interleaved they are no stream that the processor recognises.
  int64_t rows_together(const Stage& stage, const Piece& whole) const {
    if (!stage.vertical || stage.held || stage.scan || stage.loops.size() < stage.kept + 2) return 1;
    const bool args = std::any_of(stage.reductions.begin(), stage.reductions.end(),
                                  [](const Reduction& r) { return is_arg(r.combine); });
    const VarId lanes = stage.loops.back(), row = stage.loops[stage.loops.size() - 2];
    if (args || pool_.indices.extent(row) < kRowsTogether || loop_extent(lanes) * 4 < kPageBytes) return 1;
    return varying_cycles(pool_, whole.values, lanes) <= kLightBody ? kRowsTogether : 1;
  }

  // Short rows of several iterations of the vector loop are brought into scratch by the first stage that needs them,
  // and go from scratch to their buffer after the stage that makes them.
  void transpose_packed(Draft& d, Stage& stage) {
    const VarId u = *mapping_.vector, v = *mapping_.transposed;
    const GridDim* block = blocked(u);
    const uint64_t both = uint64_t{1} << u | uint64_t{1} << v;
    replace(d, packed_);
    if (block == nullptr || (d.loops & both) != both) return;
    const int64_t width = (block->block + 15) / 16 * 16, length = pool_.indices.extent(v);  // whole vectors
    Index in_scratch = pool_.indices.scale(pool_.indices.var(v), width);
    in_scratch = pool_.indices.add(in_scratch, pool_.indices.var(u));
    in_scratch = pool_.indices.add(in_scratch, pool_.indices.scale(pool_.indices.var(block->start), -1));
    const auto first_of = [&](const Index& index) {
      return pool_.indices.substitute(index, {{u, pool_.indices.var(block->start)}, {v, Index{}}},
                                      [](ExprId same) { return same; });
    };
    const auto stride_of = [&](const Index& index) -> int64_t {
      const auto stride = stride_along(pool_, index, u);
      const bool crosses = stride_along(pool_, index, v) == 1 && stride && *stride > 1;
      return crosses && (inner(pool_.vars(index)) & ~both) == 0 ? *stride : 0;
    };
    std::map<ExprId, ExprId> with;
    for (ExprId e : unconditional(pool_, roots_of(d))) {
      const Expr load = pool_[e];
      if (load.kind != Expr::Kind::kLoad || load.id >= first_scratch_ || is_narrow_float(load.dtype)) continue;
      const int64_t stride = stride_of(load.index);
      if (stride == 0) continue;
      const DType dtype = compute_dtype(load.dtype);
      const uint32_t buffer = new_scratch(dtype, length * width);
      stage.transposed.push_back({load.id, load.dtype, first_of(load.index), stride, v, buffer});
      with[e] = pool_.load(dtype, buffer, in_scratch);
    }
    packed_.insert(with.begin(), with.end());
    replace(d, with);
    for (Store& s : d.stores) {
      if (s.buffer >= first_scratch_ || is_narrow_float(s.dtype)) continue;
      const int64_t stride = stride_of(s.at);
      if (stride == 0 || (inner(pool_.vars(s.value)) & ~both) != 0) continue;
      const uint32_t buffer = new_scratch(s.dtype, length * width);
      stage.transposed_stores.push_back({s.buffer, s.dtype, first_of(s.at), stride, v, buffer, s.stream});
      // What a later stage reads back from the output lies in scratch as well, unless rounding changed it.
      if (compute_dtype(s.dtype) == s.dtype) {
        packed_[pool_.load(s.dtype, s.buffer, s.at)] = pool_.load(s.dtype, buffer, in_scratch);
      }
      s = {buffer, scratch_.back().dtype, in_scratch, s.value, false};
    }
  }

  // Loads with unit stride along the transposed variable go through a block in scratch.
  void transpose_loads(Draft& d, Stage& stage) {
    if (!mapping_.transposed || !d.sites.empty()) return;
    const VarId u = *mapping_.transposed, v = *mapping_.vector;
    const GridDim *block_u = blocked(u), *block_v = blocked(v);
    if (block_u == nullptr || block_v == nullptr || d.loops != ((uint64_t{1} << u) | (uint64_t{1} << v))) return;
    std::map<ExprId, ExprId> with;
    for (ExprId e : unconditional(pool_, roots_of(d))) {
      const Expr load = pool_[e];
      if (load.kind != Expr::Kind::kLoad || stride_along(pool_, load.index, u) != 1) continue;
      const auto stride = stride_along(pool_, load.index, v);
      if (!stride || *stride <= 1) continue;
      if (is_narrow_float(load.dtype)) continue;
      const DType dtype = compute_dtype(load.dtype);
      // The transposition writes whole vectors in both directions.
      constexpr int64_t kPad = 16;
      const int64_t width = (block_v->block + kPad - 1) / kPad * kPad;
      const uint32_t buffer = new_scratch(dtype, (block_u->block + kPad - 1) / kPad * kPad * width);
      const Index at = pool_.indices.substitute(
          load.index, {{u, pool_.indices.var(block_u->start)}, {v, pool_.indices.var(block_v->start)}},
          [](ExprId same) { return same; });
      stage.transposed.push_back({load.id, load.dtype, at, *stride, u, buffer});
      const auto offset = [&](const GridDim& d) {
        return pool_.indices.add(pool_.indices.var(d.var), pool_.indices.scale(pool_.indices.var(d.start), -1));
      };
      const Index in_block = pool_.indices.add(pool_.indices.scale(offset(*block_u), width), offset(*block_v));
      with[e] = pool_.load(dtype, buffer, in_block);
    }
    replace(d, with);
  }

  KernelExprs& exprs_;
  ExprPool& pool_;
  const ir::Graph& graph_;
  const Mapping& mapping_;
  const CpuTarget& cpu_;
  const StitchOptions& options_;
  uint32_t first_scratch_ = 0;
  std::vector<Reduction> results_;
  std::map<ExprId, ExprId> in_scratch_;
  std::vector<Draft> drafts_;
  std::vector<Scratch> scratch_;
  std::vector<SchemeChoice> schemes_;
  std::map<ExprId, ExprId> packed_;  // loads whose rows lie in scratch
  std::map<ExprId, double> cycles_;
};

}  // namespace

std::shared_ptr<StitchDesc> build_stages(KernelExprs& exprs, const ir::Graph& graph, const Mapping& mapping,
                                         const Target& target, const StitchOptions& options) {
  return StageBuilder(exprs, graph, mapping, target.cpu, options).run();
}

}  // namespace heddle::schedule
