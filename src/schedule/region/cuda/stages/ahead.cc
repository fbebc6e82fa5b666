#include "schedule/region/cuda/stages/ahead.h"

#include <algorithm>

#include "schedule/region/mapping.h"

namespace heddle::schedule {
namespace {

int64_t most_words(const CudaDrafts& k) {
  return *std::max_element(k.words.begin(), k.words.end());
}

// What all rows of several waves share is copied to shared memory where a row keeps many registers: the compiler would
// let its loads wait for those of the row, whose registers they then take.
bool copies_ahead(const CudaDrafts& k, ExprId e, const ThreadLayout& layout) {
  constexpr int64_t kMost = 3, kKeptWords = 24, kWave = 1024;  // steps; words of a thread; threads of a SM
  if (k.mapping.cta_group > 1 || k.mapping.turns > 1 || k.mapping.team <= k.mapping.lanes || layout.replicated)
    return false;
  if (k.mapping.blocks * k.mapping.threads <= k.cuda.sms * kWave || k.steps_of(layout) > kMost || k.is_streamed(e))
    return false;
  return most_words(k) >= kKeptWords && k.fits_shared(k.kept_bytes(k.pool[e].dtype, layout));
}

// Whether the last step of a row is not every thread's. It stands in a branch then, so that what it reads is asked for
// when the steps before it have what they read, unless that is done ahead. Columns have many rows for that to matter.
bool has_cut_step(const CudaDrafts& k, const ThreadLayout& layout) {
  const int64_t full = k.desc->full_steps(layout);
  return !layout.by_columns && full > 0 && full < k.desc->inner_steps(layout);
}

// Loads ahead what the first sweep of a row reads once, such as the row's statistics.
void load_next_of_row(CudaDrafts& k, CudaDraft& first) {
  constexpr size_t kMost = 4;
  CudaDraft once = draft_like(0, ThreadLayout{});
  for (ExprId e : k.plain_loads(first, 0)) {
    const uint64_t vars = k.pool.vars(e);
    const bool of_row = (vars & bit(*k.mapping.serial)) != 0 && k.inner(vars) == 0;
    if (!of_row || k.pool[e].dtype == DType::kBool || once.cached.size() == kMost) continue;
    for (int64_t& w : k.words) w += k.mapping.turns;
    CachedValue keep = k.keep_stored(e);
    keep.ahead = true;
    once.cached.push_back(keep);
    k.replace(first, {{e, k.kept_value(once.layout, keep)}});
  }
  if (!once.cached.empty()) k.ahead.push_back(std::move(once));
}

// Lets the first sweep over a row of a serial loop load what later sweeps read, as far as registers allow. Leaves some
// registers for the next row.
void load_rest_of_row(CudaDrafts& k) {
  constexpr int64_t kNext = 64;
  for (size_t later = 1; later < k.drafts.size(); ++later) {
    const CudaDraft& draft = k.drafts[later];
    const ThreadLayout layout = draft.layout;
    if (draft.scan || draft.loops == 0 || !draft.shares(k.drafts[0]) || k.steps_of(layout) > kMostSteps) continue;
    for (ExprId e : k.plain_loads(draft, draft.loops)) {
      const int64_t cost = k.steps_of(layout) * layout.vector * size_in_words(k.pool[e].dtype);
      const bool of_row = (k.pool.vars(e) & bit(*k.mapping.serial)) != 0;
      if (!of_row || k.pool[e].dtype == DType::kBool || most_words(k) + cost + kNext > k.serial_registers()) continue;
      for (int64_t& w : k.words) w += cost;
      const CachedValue keep = k.new_keep(e);
      k.drafts[0].cached.push_back(keep);
      k.read_kept(1, layout, keep);
    }
  }
}

}  // namespace

void load_ahead(CudaDrafts& k) {
  constexpr int64_t kSteps = 4, kWords = 48;  // of a thread in such a sweep; registers for what it reads
  if (k.mapping.team == 1 || k.mapping.transposed) return;
  if (k.mapping.serial) return load_rest_of_row(k);
  int64_t budget = kWords;
  std::vector<CudaDraft> ahead;
  for (size_t later = 1; later < k.drafts.size(); ++later) {
    const CudaDraft& draft = k.drafts[later];
    const ThreadLayout layout = draft.layout;
    const int64_t steps = k.steps_of(layout);
    if (draft.scan || draft.loops == 0 || steps > (k.mapping.cta_group > 1 ? 2 : 1) * kSteps) continue;
    for (ExprId e : k.plain_loads(draft, draft.loops)) {
      const int64_t cost = steps * layout.vector * size_in_words(k.pool[e].dtype);
      if (cost > budget || k.pool[e].dtype == DType::kBool) continue;
      budget -= cost;
      const bool copies = copies_ahead(k, e, layout);
      CudaDraft* first = draft.shares(k.drafts[0]) && !copies ? &k.drafts[0] : nullptr;
      for (CudaDraft& d : ahead) {
        if (first == nullptr && !copies && !d.async_copy && d.layout == layout) first = &d;
      }
      if (first == nullptr) {
        first = &ahead.emplace_back(draft_like(draft.loops, layout));
        first->async_copy = copies;
      }
      CachedValue keep = k.new_keep(e);
      if (copies) k.keep_shared(keep, keep.dtype, layout);
      first->cached.push_back(keep);
      k.read_kept(1, layout, keep);
    }
  }
  k.drafts.insert(k.drafts.begin(), std::make_move_iterator(ahead.begin()), std::make_move_iterator(ahead.end()));
}

void load_next(CudaDrafts& k) {
  constexpr int64_t kWords = 48;  // registers for what the next turn reads
  const bool turns = k.mapping.turns > 1 || k.mapping.serial;
  if (k.mapping.transposed || (!turns && k.mapping.cta_group > 1)) return;
  const auto found = std::find_if(k.drafts.begin(), k.drafts.end(),
                                  [&](const CudaDraft& d) { return turns || !d.reductions.empty(); });
  if (found == k.drafts.end()) return;
  CudaDraft& first = *found;
  const ThreadLayout& layout = first.layout;
  if (first.scan || first.loops == 0 || k.steps_of(layout) > kMostSteps || layout.loops.empty()) return;
  if (!turns && !has_cut_step(k, layout)) return;
  int64_t budget = k.mapping.serial ? kWordsOfNextRows : kWords;
  for (ExprId e : k.plain_loads(first, turns ? first.loops : first.loops & ~outer_loops(layout))) {
    const Expr& load = k.pool[e];
    const bool varies = k.mapping.serial ? (k.pool.vars(e) & bit(*k.mapping.serial)) != 0 : k.is_streamed(e);
    const bool beside = layout.vector == 1 || stride_along(k.pool, load.index, layout.loops.back()) == 1;
    const int64_t words = words_of_stored(k.steps_of(layout) * layout.vector, load.dtype) * k.mapping.turns;
    if (!varies || !beside || load.dtype == DType::kBool || words > budget) continue;
    budget -= words;
    for (int64_t& w : k.words) w += words;
    if (k.ahead.empty()) k.ahead.push_back(draft_like(first.loops, layout));
    CachedValue keep = k.keep_stored(e);
    keep.ahead = true;
    k.ahead.back().cached.push_back(keep);
    k.replace(first, {{e, k.kept_value(layout, keep)}});
  }
  if (k.mapping.serial) load_next_of_row(k, first);
}

void load_before(CudaDrafts& k) {
  if (!k.mapping.serial) return;
  for (const CudaDraft& draft : k.drafts) {
    const ThreadLayout layout = draft.layout;
    if (draft.scan || draft.loops == 0 || k.steps_of(layout) > kMostSteps) continue;
    for (ExprId e : k.plain_loads(draft, draft.loops)) {
      const int64_t words = words_of_stored(k.steps_of(layout) * layout.vector, k.pool[e].dtype);
      if ((k.pool.vars(e) & bit(*k.mapping.serial)) != 0 || k.pool[e].dtype == DType::kBool) continue;
      if (most_words(k) + words > k.serial_registers()) {
        k.desc->l1_resident.insert(k.pool[e].id);
        continue;
      }
      for (int64_t& w : k.words) w += words;
      auto sweep =
          std::find_if(k.before.begin(), k.before.end(), [&](const CudaDraft& d) { return d.layout == layout; });
      if (sweep == k.before.end()) sweep = k.before.insert(sweep, draft_like(draft.loops, layout));
      sweep->cached.push_back(k.keep_stored(e));
      k.read_kept(0, layout, sweep->cached.back());
    }
  }
}

}  // namespace heddle::schedule
