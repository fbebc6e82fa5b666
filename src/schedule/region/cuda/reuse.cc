#include <algorithm>
#include <bit>
#include <numeric>

#include "base/check.h"
#include "base/divide.h"
#include "schedule/region/cuda/drafts.h"

namespace heddle::schedule {
namespace {

constexpr double kWorthStoring = 6;     // cycles above which a value is kept rather than computed twice
constexpr int64_t kWorthSpreading = 8;  // how often a costly value must be used to get a sweep of its own
constexpr int64_t kMostSteps = 16;      // of one thread, written out
constexpr int64_t kAheadSteps = 4;      // of a thread in a sweep whose loads are made ahead
constexpr int64_t kAheadWords = 48;     // registers for them
constexpr int64_t kNextWords = 48;      // registers for what the next turn reads
constexpr int kWarp = 32;

}  // namespace

// ---- Spreads

// The loop along which most of a sweep's accesses lie side by side.
std::optional<VarId> CudaDrafts::lane_of(const Draft& d) const {
  if (mapping_.vector && (d.loops & bit(*mapping_.vector))) return mapping_.vector;
  std::map<VarId, int> votes;
  const auto vote = [&](const Index& index, int weight) {
    for (VarId v = 0; v < 64; ++v) {
      if ((d.loops >> v & 1) && loop_extent(v) > 1 && stride_along(pool_, index, v) == 1) votes[v] += weight;
    }
  };
  visit_exprs(pool_, roots_of(d), [&](ExprId e) {
    if (pool_[e].kind == Expr::Kind::kLoad) vote(pool_[e].index, 2);
  });
  for (const Store& s : d.stores) vote(s.at, 3);
  std::optional<VarId> best;
  for (const auto& [v, n] : votes) {
    if (!best || n >= votes[*best]) best = v;
  }
  for (VarId v = 64; !best && v-- > 0;) {
    if (d.loops >> v & 1) best = v;
  }
  return best;
}

int CudaDrafts::vector_for(const Draft& d, VarId lane) const {
  if (d.scan) return 1;
  // A thread that keeps the result of a column in a register has one vector of columns.
  if (mapping_.team == 1 && blocked(lane) && !exprs_.sites.empty()) return static_cast<int>(loop_extent(lane));
  const int64_t extent = std::gcd(loop_extent(lane), pool_.indices.extent(lane));
  // The end of a vector that is alone in its kernel may be cut: its elements are then done one by one.
  const bool cut = mapping_.team == 1 && blocked(lane) && exprs_.sites.empty();
  return vector_length(pool_, mapping_.grid, lane, cut ? loop_extent(lane) : extent, values_of(d), d.stores,
                       first_scratch_);
}

void CudaDrafts::choose_spreads() {
  for (Draft& d : drafts_) {
    const bool within = std::any_of(d.reductions.begin(), d.reductions.end(), [](const CudaReduction& r) {
      return r.over != CudaReduction::Over::kCarried && r.over != CudaReduction::Over::kTeam;
    });
    if (within) layout_reduction(d);
  }
  for (Draft& d : drafts_) {
    if (d.placed) continue;
    const auto like = std::find_if(drafts_.begin(), drafts_.end(),
                                   [&](const Draft& o) { return o.placed && o.loops == d.loops && !o.scan; });
    if (like == drafts_.end() && is_small(d)) {
      layout_points(d, kWarp);
      d.layout.replicated = true;
    } else if (like != drafts_.end() && !d.scan) {
      // Sweeps over the same points are spread alike, so that threads may keep what they have.
      d.layout = like->layout;
      d.placed = true;
    } else {
      layout_points(d, mapping_.team);
    }
  }
  for (Draft& d : after_) {
    const auto carries = std::find_if(drafts_.begin(), drafts_.end(), [&](const Draft& o) {
      return std::any_of(o.reductions.begin(), o.reductions.end(),
                         [](const CudaReduction& r) { return r.over == CudaReduction::Over::kCarried; });
    });
    HEDDLE_CHECK(carries != drafts_.end());
    if (carries->loops != d.loops || carries->layout.outer_loops != 0) {
      fail(ErrorCode::kUnsupportedOperator, "stitch group", "what is carried lies otherwise than what is stored");
    }
    d.layout = carries->layout;
    d.layout.group = d.layout.active = mapping_.threads;
    d.placed = true;
  }
}

// Whether each warp of a block had better reduce all points by itself than wait for the others.
bool CudaDrafts::is_small(const Draft& d) {
  constexpr int64_t kMostSteps = 2;
  if (mapping_.cta_group > 1 || mapping_.serial || mapping_.team <= kWarp || d.scan || d.reductions.empty())
    return false;
  const bool stored = std::any_of(drafts_.begin(), drafts_.end(),
                                  [&](const Draft& o) { return o.loops == d.loops && !o.stores.empty(); });
  const std::optional<VarId> lane = lane_of(d);
  if (stored || !lane) return false;
  return loop_volume(d.loops) <= kMostSteps * kWarp * vector_shared(d, *lane);
}

void CudaDrafts::layout_points(Draft& d, int team) {
  // A scan's steps come in the order of its dimension, whatever lies side by side.
  const std::optional<VarId> lane = d.scan ? std::nullopt : lane_of(d);
  d.layout.loops = ordered(d.loops, lane);
  d.layout.group = d.layout.active = team;
  if (lane) d.layout.vector = vector_shared(d, *lane);
  d.placed = true;
}

// Sweeps over the same points agree on the elements of a vector.
int CudaDrafts::vector_shared(const Draft& d, VarId lane) const {
  int vector = 8;
  for (const Draft& o : drafts_) {
    if (o.loops == d.loops) vector = std::min(vector, vector_for(o, lane));
  }
  return std::min(vector, vector_for(d, lane));
}

void CudaDrafts::layout_reduction(Draft& d) {
  const VarId lane = *lane_of(d);
  ThreadLayout& s = d.layout;
  s.vector = vector_shared(d, lane);
  s.by_columns = (d.kept & bit(lane)) != 0;
  const uint64_t lead = s.by_columns ? d.loops & ~d.kept : d.kept;
  s.loops = ordered(lead, std::nullopt);
  s.outer_loops = s.loops.size();
  for (VarId v : ordered(d.loops & ~lead, lane)) s.loops.push_back(v);
  s.active = mapping_.team;
  desc_pool_view([&](const CudaStitchDesc& view) {
    const int64_t columns = view.columns(s), rows = view.rows(s);
    if (s.by_columns) {
      if (columns <= s.active) s.active = static_cast<int>(s.active / columns * columns);
      return;
    }
    double least = 0;
    for (int group = std::min(mapping_.team, 32); group >= 1; group /= 2) {
      const auto turns = static_cast<double>(ceil_div(rows, s.active / group));
      const double cost =
          turns * (static_cast<double>(ceil_div(columns, group)) + 0.3 * std::bit_width(unsigned(group)));
      if (least == 0 || cost < 0.9 * least) {
        least = cost;
        s.group = group;
      }
    }
  });
  for (CudaReduction& r : d.reductions) {
    if (r.over != CudaReduction::Over::kGroup) continue;
    if (s.by_columns) r.over = CudaReduction::Over::kColumn;
  }
  d.placed = true;
}

// ---- Values that several sweeps need

double CudaDrafts::cycles(ExprId e) {
  const auto [at, is_new] = cycles_.try_emplace(e, 0);
  if (is_new) {
    // What does not vary within the sweep is computed once, outside of it.
    double sum = 0;
    visit_exprs(pool_, {e}, [&](ExprId id) { sum += inner(pool_.vars(id)) == 0 ? 0 : node_cycles(pool_, id); });
    cycles_[e] = sum;
  }
  return cycles_[e];
}
std::string CudaDrafts::text_of(ExprId e) const {
  const std::string* text = pool_.description(e);
  return text ? *text : "a load";
}

// The loops of a sweep outside its inner walk: what depends on them alone is computed once per row or column.
uint64_t CudaDrafts::outer_loops(const ThreadLayout& s) {
  uint64_t set = 0;
  for (size_t k = 0; k < s.loops.size(); ++k) {
    if ((k < s.outer_loops) != s.by_columns) set |= bit(s.loops[k]);
  }
  return set;
}

// Costly values that vary along fewer loops than the sweep that uses them get a sweep of their own.
void CudaDrafts::store_shared_columns() {
  std::vector<Draft> result;
  for (size_t k = 0; k < drafts_.size(); ++k) {
    const uint64_t loops = drafts_[k].loops, outer = outer_loops(drafts_[k].layout);
    const auto take = [&](ExprId e) {
      const uint64_t own = inner(pool_.vars(e));
      if (pool_[e].kind != Expr::Kind::kOp || own == loops || own == 0 || (own & ~outer) == 0) return false;
      return loop_volume(loops) >= kWorthSpreading * loop_volume(own) && cycles(e) >= kWorthStoring &&
             fits_shared(loop_volume(own) * 8);
    };
    for (ExprId e : topmost(pool_, roots_of(drafts_[k]), take)) {
      const uint64_t own = inner(pool_.vars(e));
      const uint32_t buffer = new_scratch(pool_[e].dtype, loop_volume(own));
      const Index at = scratch_position(own);
      schemes_.push_back(
          {text_of(e), Scheme::kRegional, false,
           fmt::format("costs {:.0f} cycles and is used {} times", cycles(e), loop_volume(loops) / loop_volume(own))});
      Draft* stage = nullptr;
      for (Draft& d : result) {
        if (d.level == drafts_[k].level && d.loops == own && d.reductions.empty()) stage = &d;
      }
      if (stage == nullptr) {
        stage = &result.emplace_back();
        stage->level = drafts_[k].level;
        stage->loops = stage->kept = own;
        layout_points(*stage, mapping_.cta_group > 1 ? mapping_.threads : mapping_.team);
        stage->layout.replicated = mapping_.cta_group > 1;
      }
      stage->stores.push_back({buffer, scratch_.back().dtype, at, e, false});
      stage->layout.vector = std::min(stage->layout.vector, vector_for(*stage, stage->layout.loops.back()));
      const std::map<ExprId, ExprId> with = {{e, pool_.load(scratch_.back().dtype, buffer, at)}};
      for (size_t later = k; later < drafts_.size(); ++later) replace(drafts_[later], with);
    }
    result.push_back(std::move(drafts_[k]));
  }
  drafts_ = std::move(result);
}

// A load of an operand that other iterations of the grid do not read as well; what all of them read stays in the L1.
bool CudaDrafts::is_streamed(ExprId e) const {
  if (pool_[e].kind != Expr::Kind::kLoad || pool_[e].id >= first_scratch_) return false;
  uint64_t grid = mapping_.fixed;
  for (const GridDim& d : mapping_.grid) grid |= bit(d.var);
  for (VarId v = 0; v < 64; ++v) {
    if ((grid & bit(v)) && pool_.indices.extent(v) == 1) grid &= ~bit(v);
  }
  return grid == 0 || (pool_.vars(e) & grid) != 0;
}
bool CudaDrafts::reads_stream(ExprId e) const {
  bool reads = false;
  visit_exprs(pool_, {e}, [&](ExprId id) { reads = reads || is_streamed(id); });
  return reads;
}

// Of the values that a sweep may keep, those that are not soon made of the others.
void CudaDrafts::drop_derived(std::vector<ExprId>& found) const {
  for (size_t k = found.size(); k-- > 0;) {
    if (pool_[found[k]].kind != Expr::Kind::kOp) continue;
    double cost = 0;
    bool possible = true;
    ExprWalk(pool_).run(found[k], [&](ExprId e) {
      const bool known = e != found[k] && std::find(found.begin(), found.end(), e) != found.end();
      if (!possible || known || inner(pool_.vars(e)) == 0) return false;
      possible = !is_streamed(e);
      cost += node_cycles(pool_, e);
      return true;
    });
    if (possible && cost < kWorthStoring) found.erase(found.begin() + static_cast<ptrdiff_t>(k));
  }
}

int64_t CudaDrafts::register_words() const {
  return mapping_.threads <= 256 ? 96 : 64;
}

// What a sweep has read from memory or computed at some cost stays with the threads for later sweeps over the same
// points.
void CudaDrafts::keep_between_stages() {
  std::vector<int64_t>& words = words_;
  words.assign(drafts_.size(), 0);
  for (const Draft& d : drafts_) {
    for (const CudaReduction& r : d.reductions) {
      if (r.over != CudaReduction::Over::kCarried) continue;
      for (int64_t& w : words) w += steps_of(d.layout) * d.layout.vector * size_in_words(r.dtype);
    }
  }
  for (size_t first = 0; first + 1 < drafts_.size(); ++first) {
    if (drafts_[first].loops == 0 || drafts_[first].scan) continue;
    const std::vector<ExprId> made = unconditional(pool_, roots_of(drafts_[first]));
    const uint64_t loops = drafts_[first].loops;
    const auto take = [&](ExprId e) {
      const Expr::Kind kind = pool_[e].kind;
      if (!std::binary_search(made.begin(), made.end(), e) || (kind != Expr::Kind::kOp && kind != Expr::Kind::kLoad))
        return false;
      return inner(pool_.vars(e)) == loops && (reads_stream(e) || cycles(e) >= kWorthStoring);
    };
    std::vector<ExprId> roots;
    for (size_t later = first + 1; later < drafts_.size(); ++later) {
      if (!shares(first, later)) continue;
      const std::vector<ExprId> own = roots_of(drafts_[later]);
      roots.insert(roots.end(), own.begin(), own.end());
    }
    std::vector<ExprId> found = topmost(pool_, roots, take);
    drop_derived(found);
    for (ExprId e : found) keep(first, e, words);
  }
}
// Whether the threads of a later sweep have the points that they had in an earlier one.
bool CudaDrafts::shares(size_t first, size_t later) const {
  return !drafts_[later].scan && drafts_[later].layout == drafts_[first].layout;
}
int64_t CudaDrafts::size_in_words(DType dtype) {
  return std::max<int64_t>(1, size_of(compute_dtype(dtype)) / 4);
}

void CudaDrafts::keep(size_t first, ExprId e, std::vector<int64_t>& words) {
  const ThreadLayout& layout = drafts_[first].layout;
  size_t last = first;
  for (size_t later = first + 1; later < drafts_.size(); ++later) {
    if (!shares(first, later)) continue;
    bool uses = false;
    visit_exprs(pool_, roots_of(drafts_[later]), [&](ExprId id) { uses = uses || id == e; });
    if (uses) last = later;
  }
  if (last == first) return;
  const int64_t steps = steps_of(layout), elements = steps * layout.vector;
  const int64_t cost = elements * size_in_words(pool_[e].dtype);
  bool registers = steps <= kMostSteps;
  for (size_t s = first; s < last; ++s) registers = registers && words[s] + cost <= register_words();
  // In shared memory operands lie as they are in memory, so that they may be copied there.
  if (!registers && pool_[e].kind == Expr::Kind::kOp && pool_[e].op == ir::Op::kCast) {
    const Expr& from = pool_[pool_[e].args[0]];
    if (from.kind == Expr::Kind::kLoad && from.id < first_scratch_) e = pool_[e].args[0];
  }
  const bool plain = pool_[e].kind == Expr::Kind::kLoad;
  const DType stored = plain ? pool_[e].dtype : compute_dtype(pool_[e].dtype);
  if (!registers && (mapping_.team == 1 || layout.replicated || pool_[e].dtype == DType::kBool ||
                     !fits_shared(kept_bytes(stored, layout)))) {
    schemes_.push_back({text_of(e), Scheme::kIndependent, false,
                        fmt::format("read or computed in each sweep: {} values a thread do not stay", elements)});
    return;
  }
  CachedValue keep{e, next_local_++, pool_[e].dtype};
  if (registers) {
    for (size_t s = first; s < last; ++s) words[s] += cost;
  } else {
    keep_shared(keep, stored, layout);
  }
  schemes_.push_back({text_of(e), registers ? Scheme::kLocal : Scheme::kRegional, false,
                      fmt::format("{} values a thread in {}", elements, registers ? "registers" : "shared memory")});
  const std::map<ExprId, ExprId> with = {{e, local_over(layout, keep)}};
  drafts_[first].cached.push_back(keep);
  for (size_t later = first + 1; later < drafts_.size(); ++later) {
    if (shares(first, later)) replace(drafts_[later], with);
  }
}

// Of what the threads of a block keep in shared memory, each its own points.
int64_t CudaDrafts::kept_bytes(DType stored, const ThreadLayout& layout) {
  const int64_t lanes = std::min(layout.active, mapping_.threads);
  return steps_of(layout) * layout.vector * lanes * static_cast<int64_t>(size_of(stored));
}
void CudaDrafts::keep_shared(CachedValue& keep, DType stored, const ThreadLayout& layout) {
  keep.shared = true;
  scratch_.push_back({stored, kept_bytes(stored, layout) / static_cast<int64_t>(size_of(stored))});
  keep_buffers_[keep.local] = first_scratch_ + static_cast<uint32_t>(scratch_.size()) - 1;
}

// ---- Loads ahead of their use

// Operands that a sweep reads whatever comes before it, and that vary along all of `least` of its loops.
std::vector<ExprId> CudaDrafts::plain_loads(const Draft& d, uint64_t least) const {
  std::vector<ExprId> found;
  for (ExprId e : unconditional(pool_, roots_of(d))) {
    const Expr& load = pool_[e];
    if (load.kind != Expr::Kind::kLoad || load.id >= first_scratch_ || (least & ~pool_.vars(e)) != 0) continue;
    const bool affine = std::all_of(load.index.terms.begin(), load.index.terms.end(), [&](const auto& term) {
      return pool_.indices.atom(term.first).kind == Atom::Kind::kVar;
    });
    if (affine) found.push_back(e);
  }
  return found;
}

ExprId CudaDrafts::local_over(const ThreadLayout& layout, const CachedValue& keep) {
  Index varies;
  for (VarId v : layout.loops) varies = pool_.indices.add(varies, pool_.indices.var(v));
  return pool_.local(keep.dtype, keep.local, varies);
}

// What all rows of several waves share is copied to shared memory where a row keeps many registers: the compiler would
// let its loads wait for those of the row, whose registers they then take.
bool CudaDrafts::copies_ahead(ExprId e, const ThreadLayout& layout) {
  constexpr int64_t kMost = 3, kKeptWords = 24, kWave = 1024;  // steps; words of a thread; threads of a SM
  if (mapping_.cta_group > 1 || mapping_.turns > 1 || mapping_.team <= kWarp || layout.replicated) return false;
  if (mapping_.blocks * mapping_.threads <= cuda_.sms * kWave || steps_of(layout) > kMost || is_streamed(e))
    return false;
  return *std::max_element(words_.begin(), words_.end()) >= kKeptWords &&
         fits_shared(kept_bytes(pool_[e].dtype, layout));
}

// What later sweeps of few steps read is asked for at the beginning, so that a chain of reductions does not wait for
// memory several times.
void CudaDrafts::load_ahead() {
  if (mapping_.team == 1 || mapping_.serial || mapping_.transposed) return;
  int64_t budget = kAheadWords;
  std::vector<Draft> ahead;
  for (size_t later = 1; later < drafts_.size(); ++later) {
    const ThreadLayout layout = drafts_[later].layout;
    const int64_t steps = steps_of(layout);
    if (drafts_[later].scan || drafts_[later].loops == 0 || steps > (mapping_.cta_group > 1 ? 2 : 1) * kAheadSteps)
      continue;
    for (ExprId e : plain_loads(drafts_[later], drafts_[later].loops)) {
      const int64_t cost = steps * layout.vector * size_in_words(pool_[e].dtype);
      if (cost > budget || pool_[e].dtype == DType::kBool) continue;
      budget -= cost;
      const bool async_copy = copies_ahead(e, layout);
      Draft* first = shares(0, later) && !async_copy ? &drafts_[0] : nullptr;
      for (Draft& d : ahead) {
        if (first == nullptr && !async_copy && !d.async_copy && d.layout == layout) first = &d;
      }
      if (first == nullptr) {
        first = &ahead.emplace_back();
        first->loops = first->kept = drafts_[later].loops;
        first->layout = layout;
        first->placed = true;
        first->async_copy = async_copy;
      }
      CachedValue keep{e, next_local_++, pool_[e].dtype};
      if (async_copy) keep_shared(keep, pool_[e].dtype, layout);
      first->cached.push_back(keep);
      const std::map<ExprId, ExprId> with = {{e, local_over(layout, keep)}};
      for (size_t k = 1; k < drafts_.size(); ++k) {
        if (!drafts_[k].scan && drafts_[k].layout == layout) replace(drafts_[k], with);
      }
    }
  }
  drafts_.insert(drafts_.begin(), std::make_move_iterator(ahead.begin()), std::make_move_iterator(ahead.end()));
}

// Whether the last step of a row is not every thread's. It stands in a branch then, so that what it reads is asked for
// when the steps before it have what they read, unless that is done ahead. Columns have many rows for that to matter.
bool CudaDrafts::has_cut_step(const ThreadLayout& layout) {
  bool cut = false;
  if (layout.by_columns) return cut;
  desc_pool_view([&](const CudaStitchDesc& view) {
    const int64_t full = view.full_steps(layout);
    cut = full > 0 && full < view.inner_steps(layout);
  });
  return cut;
}

// What the first sweep of a turn streams is asked for before it: by all turns that a team does at a time together, by
// the turns of a serial loop while the turn before is worked on, by others where its last step is cut.
void CudaDrafts::load_next() {
  if (mapping_.transposed || drafts_.empty()) return;
  const bool turns = mapping_.turns > 1 || mapping_.serial;
  const auto reduces = [](const Draft& d) { return !d.reductions.empty(); };
  const auto found = turns ? drafts_.begin() : std::find_if(drafts_.begin(), drafts_.end(), reduces);
  if (found == drafts_.end() || (!turns && mapping_.cta_group > 1)) return;
  Draft& first = *found;
  const ThreadLayout& layout = first.layout;
  if (first.scan || first.loops == 0 || steps_of(layout) > kMostSteps || layout.loops.empty()) return;
  if (!turns && !has_cut_step(layout)) return;
  int64_t budget = kNextWords;
  const uint64_t least = turns ? first.loops : first.loops & ~outer_loops(layout);
  for (ExprId e : plain_loads(first, least)) {
    const Expr& load = pool_[e];
    const bool varies = mapping_.serial ? (pool_.vars(e) & bit(*mapping_.serial)) != 0 : is_streamed(e);
    const bool beside = layout.vector == 1 || stride_along(pool_, load.index, layout.loops.back()) == 1;
    const int64_t words = words_of_stored(steps_of(layout) * layout.vector, load.dtype) * mapping_.turns;
    if (!varies || !beside || load.dtype == DType::kBool || words > budget) continue;
    budget -= words;
    for (int64_t& w : words_) w += words;
    if (ahead_.empty()) {
      Draft& draft = ahead_.emplace_back();
      draft.loops = draft.kept = first.loops;
      draft.layout = layout;
      draft.placed = true;
    }
    CachedValue keep{e, next_local_++, load.dtype};
    keep.stored = true;
    ahead_.back().cached.push_back(keep);
    replace(first, {{e, local_over(layout, keep)}});
  }
}
int64_t CudaDrafts::words_of_stored(int64_t elements, DType dtype) {
  return ceil_div(elements * static_cast<int64_t>(size_of(dtype)), 4);
}

// Operands of which one sweep reads each element once. The caller drops those that are wanted later.
void CudaDrafts::find_once() {
  constexpr int64_t kWorthwhile = 1 << 20;  // bytes; less does not push anything out of the L2
  std::map<uint32_t, std::vector<ExprId>> loads;
  for (const auto* stages : {&desc_->before, &desc_->ahead, &desc_->stages, &desc_->after}) {
    for (const CudaStage& stage : *stages) {
      std::vector<ExprId> roots;
      for (const CudaReduction& r : stage.reductions) {
        roots.push_back(r.value);
        if (is_arg(r.combine)) roots.push_back(r.position);
      }
      for (const Store& s : stage.stores) roots.push_back(s.value);
      for (const CachedValue& k : stage.cached) roots.push_back(k.value);
      for (const TransposedLoad& t : stage.transposed) loads[t.from].resize(2);
      visit_exprs(pool_, roots, [&](ExprId e) {
        if (pool_[e].kind == Expr::Kind::kLoad && pool_[e].id < exprs_.inputs.size()) loads[pool_[e].id].push_back(e);
      });
    }
  }
  for (const auto& [buffer, found] : loads) {
    const int64_t elements = element_count(exprs_.inputs[buffer].shape);
    const bool large = elements * static_cast<int64_t>(size_of(exprs_.inputs[buffer].dtype)) >= kWorthwhile;
    if (found.size() == 1 && large && exprs_.volume(pool_.vars(found[0])) == elements)
      desc_->evict_first.insert(buffer);
  }
}

// What all turns of the serial loop read stays in registers while they go by, or in the L1.
void CudaDrafts::load_before() {
  if (!mapping_.serial) return;
  const int64_t registers =
      std::min<int64_t>(65536 / (mapping_.threads * std::max(mapping_.min_blocks_per_sm, 1)), 255);
  std::vector<Draft> before;
  for (size_t k = 0; k < drafts_.size(); ++k) {
    const ThreadLayout layout = drafts_[k].layout;
    if (drafts_[k].scan || drafts_[k].loops == 0 || steps_of(layout) > kMostSteps) continue;
    for (ExprId e : plain_loads(drafts_[k], drafts_[k].loops)) {
      const int64_t cost = steps_of(layout) * layout.vector * size_in_words(pool_[e].dtype);
      const int64_t most = *std::max_element(words_.begin(), words_.end());
      if ((pool_.vars(e) & bit(*mapping_.serial)) != 0 || pool_[e].dtype == DType::kBool) continue;
      if (most + cost > registers - kSerialReserve) {
        desc_->l1_resident.insert(pool_[e].id);
        continue;
      }
      for (int64_t& w : words_) w += cost;
      auto stage = std::find_if(before.begin(), before.end(), [&](const Draft& d) { return d.layout == layout; });
      if (stage == before.end()) {
        stage = before.insert(before.end(), Draft{});
        stage->loops = stage->kept = drafts_[k].loops;
        stage->layout = layout;
        stage->placed = true;
      }
      const CachedValue keep{e, next_local_++, pool_[e].dtype};
      stage->cached.push_back(keep);
      const std::map<ExprId, ExprId> with = {{e, local_over(layout, keep)}};
      for (Draft& d : drafts_) {
        if (!d.scan && d.layout == layout) replace(d, with);
      }
    }
  }
  before_ = std::move(before);
}

}  // namespace heddle::schedule
