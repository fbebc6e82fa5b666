#pragma once

#include <memory>
#include <string_view>

#include "schedule/region/cuda/mapping.h"
#include "schedule/region/drafts.h"

namespace heddle::schedule {

// A sweep under construction.
struct CudaDraft : CudaStage {
  int level = 0;
  uint64_t loops = 0, kept = 0;
  bool placed = false;  // `layout` is chosen

  bool shares(const CudaDraft& earlier) const { return !scan && layout == earlier.layout; }
};

// The sweeps of a kernel from their first draft to the description, which grows in `desc`. The steps in stages.cc pass
// this on.
struct CudaDrafts : RegionDrafts {
  CudaDrafts(std::shared_ptr<CudaStitchDesc> begun, KernelExprs& kernel, const ir::Graph& region,
             const CudaMapping& mapped, const CudaTarget& device);

  const CudaMapping& mapping;
  const CudaTarget& cuda;
  std::shared_ptr<CudaStitchDesc> desc;
  std::vector<CudaReduction> results;  // one per reduction site
  std::vector<CudaDraft> drafts, before, ahead, after;
  std::vector<int64_t> words;  // registers that each draft keeps for other drafts
  uint32_t next_local;

  bool is_carried(const ReductionSite& i) const;
  int64_t steps_of(const ThreadLayout& s) const { return desc->outer_steps(s) * desc->inner_steps(s); }
  // With `bytes_of_team` more bytes for each team: the shared memory of a block; whether a block has that much; whether
  // this reduces the blocks that an SM has room for from two to one.
  int64_t shared_with(int64_t bytes_of_team) const;
  bool fits_shared(int64_t bytes_of_team) const;
  bool displaces_block(int64_t bytes_of_team) const;
  void replace(CudaDraft& d, const std::map<ExprId, ExprId>& with);
  // The cycles that a value costs at each point.
  double cycles(ExprId e);
  // True for a load of an operand that varies over the iterations of the grid, or if there is only one iteration. Data
  // that all iterations share stays in the L1.
  bool is_streamed(ExprId e) const;
  // Loads of operands that depend on no earlier sweep and vary along all of `least` of the sweep's loops.
  std::vector<ExprId> plain_loads(const CudaDraft& d, uint64_t least) const;

  // A value that threads keep for each of their points, and the replacement of its reads in sweeps with the same
  // layout, from draft `begin` on.
  CachedValue new_keep(ExprId e) { return {e, next_local++, pool[e].dtype}; }
  ExprId kept_value(const ThreadLayout& layout, const CachedValue& keep);
  void read_kept(size_t begin, const ThreadLayout& layout, const CachedValue& keep);
  // The bytes for values that the threads of a block keep in shared memory, each for its own points.
  int64_t kept_bytes(DType stored, const ThreadLayout& layout) const;
  void keep_shared(CachedValue& keep, DType stored, const ThreadLayout& layout);
};

// An empty sweep with the given layout.
CudaDraft draft_like(uint64_t loops, const ThreadLayout& layout);
// The loops of a sweep outside its inner steps. Expressions that depend on these loops only are computed once per row
// or column.
uint64_t outer_loops(const ThreadLayout& s);
// Registers that a thread needs for a value, and for elements in their storage type.
int64_t size_in_words(DType dtype);
int64_t words_of_stored(int64_t elements, DType dtype);

inline constexpr int64_t kMostSteps = 16;  // of one thread, fully unrolled
inline constexpr int kWarp = 32;

}  // namespace heddle::schedule
