#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/log.h"
#include "schedule/expr/expr_walk.h"
#include "schedule/region/region.h"

namespace heddle::schedule {

// The target-independent data for building a kernel's stages: the loops of one grid iteration, and the positions of
// results in scratch memory. The constructor moves the kernel's expressions into `begun`, a description that later
// steps complete.
struct RegionDrafts {
  RegionDrafts(KernelExprs& kernel, const ir::Graph& region, const RegionMapping& mapped, RegionDesc& begun);

  const KernelExprs& exprs;
  const ir::Graph& graph;
  const RegionMapping& structure;
  ExprPool& pool;
  std::vector<Scratch>& scratch;
  std::vector<SchemeChoice>& schemes;
  const uint32_t first_scratch;         // buffers with this index or a higher one are scratch
  std::map<ExprId, ExprId> in_scratch;  // from results to the loads that read them from scratch
  std::map<ExprId, double> known_cycles;

  uint64_t inner(uint64_t vars) const { return vars & ~structure.fixed & ~starts_; }
  const GridDim* blocked(VarId v) const { return schedule::blocked(structure.grid, v); }
  int64_t loop_extent(VarId v) const;
  int64_t loop_volume(uint64_t loops) const;
  int64_t volume(uint64_t vars) const;
  // Returns the loops in the set, outermost first. `last`, if it is in the set, becomes the innermost loop.
  std::vector<VarId> ordered(uint64_t loops, std::optional<VarId> last) const;
  // The position in scratch of a result that is stored for each iteration of `loops`. Blocked variables count from the
  // start of their block. The kernel's vector variable has unit stride.
  Index scratch_position(uint64_t loops);
  uint32_t new_scratch(DType dtype, int64_t elements);
  ExprId resolve(ExprId e) { return in_scratch.empty() ? e : pool.substitute(e, {}, in_scratch); }
  // In the expressions `roots`, finds loads that have unit stride along the tile's row variable but not along its
  // column variable, and replaces them by loads from scratch. `accepts` restricts the types of the loads. Each replaced
  // load gets a tile of height x width elements in scratch. `with` receives the replacements. Returns the copies that
  // fill the tiles.
  struct Tile {
    const GridDim &rows, &columns;
    int64_t height, width;
  };
  std::vector<TransposedLoad> through_tiles(const std::vector<ExprId>& roots, const Tile& tile,
                                            const std::function<bool(DType stored)>& accepts,
                                            std::map<ExprId, ExprId>& with);

  // The name of a reduction, such as "max of Softmax".
  std::string name_of(const ReductionSite& i) const;
  // A reduction with only the target-independent fields set.
  template <typename Reduction>
  Reduction reduction_at(const ReductionSite& i) const {
    Reduction r;
    r.combine = combine_of(*i.node);
    r.dtype = pool[i.operand].dtype;
    r.local = i.local;
    r.comment = name_of(i);
    r.last = i.node->op == ir::Op::kArgReduce && i.node->attrs.flag("last");
    return r;
  }
  std::string text_of(ExprId e) const;
  // Returns a weight for each loop. A loop with a higher weight is a better vector loop. The weight counts the loads in
  // `values` and the stores that have unit stride along the loop.
  std::map<VarId, int> unit_stride_votes(const std::vector<ExprId>& values, const std::vector<Store>& stores,
                                         uint64_t loops) const;

 private:
  const uint64_t starts_;
};

inline constexpr double kWorthStoring = 6;  // values with more node_cycles() are stored rather than computed twice

// Appends a draft, which describes one stage, and returns it. A draft has a level, loops, kept loops, reductions,
// stores, and possibly a scan.
template <typename Draft>
Draft& add_draft(std::vector<Draft>& drafts, int level, uint64_t loops, uint64_t kept) {
  Draft& d = drafts.emplace_back();
  d.level = level;
  d.loops = loops;
  d.kept = kept;
  return d;
}

// Returns the first draft over `loops` that is late enough: the one with the lowest level that is at least `level`. If
// the kernel has a scan, returns the scan's draft. Adds a draft if there is none or `merges` is false.
template <typename Draft>
Draft& draft_over(std::vector<Draft>& drafts, uint64_t loops, int level, bool merges = true) {
  Draft* best = nullptr;
  for (Draft& d : drafts) {
    if (d.scan) best = &d;  // a scan is the only stage of its kernel
    if (merges && d.loops == loops && d.level >= level && (best == nullptr || d.level < best->level)) best = &d;
  }
  return best != nullptr ? *best : add_draft(drafts, level, loops, loops);
}

// Returns the draft for reductions with the given level, loops and kept loops. Adds a draft if there is none or
// `merges` is false.
template <typename Draft>
Draft& draft_for(std::vector<Draft>& drafts, int level, uint64_t loops, uint64_t kept, bool merges = true) {
  for (Draft& d : drafts) {
    if (merges && d.level == level && d.loops == loops && d.kept == kept && !d.scan) return d;
  }
  return add_draft(drafts, level, loops, kept);
}

// Sorts drafts by level. Within a level, drafts with reductions come first.
template <typename Draft>
void sort_drafts(std::vector<Draft>& drafts) {
  std::stable_sort(drafts.begin(), drafts.end(), [](const Draft& a, const Draft& b) {
    return std::pair(a.level, a.reductions.empty()) < std::pair(b.level, b.reductions.empty());
  });
}

// Moves values from a draft to a separate draft before it, which stores them to scratch. Moves the topmost values for
// which `take(draft, value)` is true; later uses load them from scratch. Calls `begin(draft)` for each new draft and
// `stored(draft)` after each store.
template <typename Drafts, typename Take, typename Begin, typename Stored>
void store_apart(Drafts& k, const Take& take, const Begin& begin, const Stored& stored) {
  decltype(k.drafts) result;
  for (size_t n = 0; n < k.drafts.size(); ++n) {
    const int level = k.drafts[n].level;
    for (ExprId e : topmost(k.pool, k.drafts[n].roots(), [&](ExprId e) { return take(k.drafts[n], e); })) {
      const uint64_t own = k.inner(k.pool.vars(e));
      const uint32_t buffer = k.new_scratch(k.pool[e].dtype, k.loop_volume(own));
      const DType dtype = k.scratch.back().dtype;
      const Index at = k.scratch_position(own);
      k.schemes.push_back({k.text_of(e), Scheme::kRegional, false,
                           fmt::format("costs {:.0f} cycles and is used {} times", k.cycles(e),
                                       k.loop_volume(k.drafts[n].loops) / k.loop_volume(own))});
      auto found = std::find_if(result.rbegin(), result.rend(), [&](const auto& d) {
        return d.level == level && d.loops == own && d.reductions.empty();
      });
      if (found == result.rend()) {
        begin(add_draft(result, level, own, own));
        found = result.rbegin();
      }
      found->stores.push_back({buffer, dtype, at, e, false});
      stored(*found);
      const std::map<ExprId, ExprId> with = {{e, k.pool.load(dtype, buffer, at)}};
      for (size_t later = n; later < k.drafts.size(); ++later) k.replace(k.drafts[later], with);
    }
    result.push_back(std::move(k.drafts[n]));
  }
  k.drafts = std::move(result);
}

// A step that turns the expressions of a kernel into stages.
template <typename Drafts>
struct StageStep {
  std::string_view name, what;
  void (*run)(Drafts& k);
};

// Runs the steps in order. With HEDDLE_LOG=stages, logs the state after each step, as text from describe(k).
template <typename Drafts>
void run_steps(std::span<const StageStep<Drafts>> steps, Drafts& k) {
  const bool told = logs("stages");
  for (const StageStep<Drafts>& step : steps) {
    step.run(k);
    if (told) log("stages", fmt::format("{}: {}{}", step.name, step.what, describe(k)));
  }
}

}  // namespace heddle::schedule
