#include "schedule/region/cuda/stages/reuse.h"

#include <fmt/format.h>

#include <algorithm>

#include "schedule/region/cuda/stages/layouts.h"

namespace heddle::schedule {
namespace {

constexpr int64_t kWorthSweep = 8;  // how often a costly value must be used to get a sweep of its own

bool reads_stream(const CudaDrafts& k, ExprId e) {
  bool reads = false;
  visit_exprs(k.pool, {e}, [&](ExprId id) { reads = reads || k.is_streamed(id); });
  return reads;
}

// Of the values that a sweep may keep, those that are not soon made of the others.
void drop_derived(const CudaDrafts& k, std::vector<ExprId>& found) {
  for (size_t n = found.size(); n-- > 0;) {
    if (k.pool[found[n]].kind != Expr::Kind::kOp) continue;
    double cost = 0;
    bool possible = true;
    ExprWalk(k.pool).run(found[n], [&](ExprId e) {
      const bool known = e != found[n] && std::find(found.begin(), found.end(), e) != found.end();
      if (!possible || known || k.inner(k.pool.vars(e)) == 0) return false;
      possible = !k.is_streamed(e);
      cost += node_cycles(k.pool, e);
      return true;
    });
    if (possible && cost < kWorthStoring) found.erase(found.begin() + static_cast<ptrdiff_t>(n));
  }
}

// The last sweep that is laid out alike and needs a value; `first` where none does.
size_t last_use(const CudaDrafts& k, size_t first, ExprId e) {
  size_t last = first;
  for (size_t later = first + 1; later < k.drafts.size(); ++later) {
    if (!k.drafts[later].shares(k.drafts[first])) continue;
    visit_exprs(k.pool, k.drafts[later].roots(), [&](ExprId id) { last = id == e ? later : last; });
  }
  return last;
}

// The registers that the rows loaded next will take.
int64_t words_of_next_rows(const CudaDrafts& k) {
  const CudaDraft& first = k.drafts[0];
  int64_t words = 0;
  for (ExprId e : k.plain_loads(first, first.loops)) {
    if ((k.pool.vars(e) & bit(*k.mapping.serial)) == 0) continue;
    words += words_of_stored(k.steps_of(first.layout) * first.layout.vector, k.pool[e].dtype) * k.mapping.turns;
  }
  return std::min(words, kWordsOfNextRows);
}

bool fit_registers(const CudaDrafts& k, size_t first, size_t last, int64_t words) {
  int64_t most = k.mapping.threads <= 256 ? 96 : 64;
  // Where a block has a row, a thread has few vectors, whose sweeps take less than the reserve.
  if (k.mapping.serial) {
    const int64_t spare = k.mapping.team > k.mapping.lanes && k.drafts[first].layout.vector > 1 ? 12 : 0;
    most = std::min(most, k.serial_registers() + spare - words_of_next_rows(k));
  }
  return std::all_of(k.words.begin() + static_cast<ptrdiff_t>(first), k.words.begin() + static_cast<ptrdiff_t>(last),
                     [&](int64_t taken) { return taken + words <= most; });
}

void keep(CudaDrafts& k, size_t first, ExprId e) {
  const ThreadLayout& layout = k.drafts[first].layout;
  const size_t last = last_use(k, first, e);
  if (last == first) return;
  const int64_t steps = k.steps_of(layout), elements = steps * layout.vector;
  const int64_t words = elements * size_in_words(k.pool[e].dtype);
  const bool registers = steps <= kMostSteps && fit_registers(k, first, last, words);
  // In shared memory operands lie as they are in memory, so that they may be copied there.
  if (!registers && k.pool[e].kind == Expr::Kind::kOp && k.pool[e].op == ir::Op::kCast) {
    const Expr& from = k.pool[k.pool[e].args[0]];
    if (from.kind == Expr::Kind::kLoad && from.id < k.first_scratch) e = k.pool[e].args[0];
  }
  const bool plain = k.pool[e].kind == Expr::Kind::kLoad;
  const DType stored = plain ? k.pool[e].dtype : compute_dtype(k.pool[e].dtype);
  if (!registers && (k.mapping.team == 1 || layout.replicated || k.pool[e].dtype == DType::kBool ||
                     !k.fits_shared(k.kept_bytes(stored, layout)))) {
    k.schemes.push_back({k.text_of(e), Scheme::kIndependent, false,
                         fmt::format("read or computed in each sweep: {} values a thread do not stay", elements)});
    return;
  }
  // A block alone waits for memory, which costs more than what is on the chip takes to be made again.
  if (!registers && !reads_stream(k, e) && k.displaces_block(k.kept_bytes(stored, layout))) {
    k.schemes.push_back(
        {k.text_of(e), Scheme::kIndependent, false,
         fmt::format("computed in each sweep: {} values a thread would take the place of an SM's second "
                     "block",
                     elements)});
    return;
  }
  CachedValue keep = k.new_keep(e);
  if (registers) {
    for (size_t s = first; s < last; ++s) k.words[s] += words;
  } else {
    k.keep_shared(keep, stored, layout);
  }
  k.schemes.push_back({k.text_of(e), registers ? Scheme::kLocal : Scheme::kRegional, false,
                       fmt::format("{} values a thread in {}", elements, registers ? "registers" : "shared memory")});
  k.drafts[first].cached.push_back(keep);
  k.read_kept(first + 1, layout, keep);
}

// What a sweep has read from memory or computed at some cost, and sweeps that are laid out alike need.
std::vector<ExprId> worth_keeping(CudaDrafts& k, size_t first) {
  const std::vector<ExprId> made = unconditional(k.pool, k.drafts[first].roots());
  const uint64_t loops = k.drafts[first].loops;
  const auto take = [&](ExprId e) {
    const Expr::Kind kind = k.pool[e].kind;
    if (kind != Expr::Kind::kOp && kind != Expr::Kind::kLoad) return false;
    if (!std::binary_search(made.begin(), made.end(), e) || k.inner(k.pool.vars(e)) != loops) return false;
    return reads_stream(k, e) || k.cycles(e) >= kWorthStoring;
  };
  std::vector<ExprId> roots;
  for (size_t later = first + 1; later < k.drafts.size(); ++later) {
    if (!k.drafts[later].shares(k.drafts[first])) continue;
    const std::vector<ExprId> own = k.drafts[later].roots();
    roots.insert(roots.end(), own.begin(), own.end());
  }
  std::vector<ExprId> found = topmost(k.pool, roots, take);
  drop_derived(k, found);
  return found;
}

}  // namespace

void store_shared_columns(CudaDrafts& k) {
  const auto take = [&](const CudaDraft& d, ExprId e) {
    const uint64_t own = k.inner(k.pool.vars(e));
    if (k.pool[e].kind != Expr::Kind::kOp || own == d.loops || own == 0) return false;
    return (own & ~outer_loops(d.layout)) != 0 && k.loop_volume(d.loops) >= kWorthSweep * k.loop_volume(own) &&
           k.cycles(e) >= kWorthStoring && k.fits_shared(k.loop_volume(own) * 8);
  };
  const auto begin = [&](CudaDraft& d) {
    layout_points(k, d, k.mapping.cta_group > 1 ? k.mapping.threads : k.mapping.team);
    d.layout.replicated = k.mapping.cta_group > 1;
  };
  store_apart(k, take, begin, [&](CudaDraft& d) {
    d.layout.vector = std::min(d.layout.vector, vector_for(k, d, d.layout.loops.back()));
  });
}

void keep_between_stages(CudaDrafts& k) {
  k.words.assign(k.drafts.size(), 0);
  for (const CudaDraft& d : k.drafts) {
    for (const CudaReduction& r : d.reductions) {
      if (r.over != CudaReduction::Over::kCarried) continue;
      for (int64_t& w : k.words) w += k.steps_of(d.layout) * d.layout.vector * size_in_words(r.dtype);
    }
  }
  for (size_t first = 0; first + 1 < k.drafts.size(); ++first) {
    if (k.drafts[first].loops == 0 || k.drafts[first].scan) continue;
    for (ExprId e : worth_keeping(k, first)) keep(k, first, e);
  }
}

}  // namespace heddle::schedule
