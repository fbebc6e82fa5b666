#pragma once

#include <memory>
#include <string_view>

#include "schedule/region/cuda/mapping.h"
#include "schedule/region/drafts.h"

namespace heddle::schedule {

// A sweep while it is put together.
struct CudaDraft : CudaStage {
  int level = 0;
  uint64_t loops = 0, kept = 0;
  bool placed = false;  // `layout` is chosen

  bool shares(const CudaDraft& earlier) const { return !scan && layout == earlier.layout; }
};

// The sweeps of a kernel between their first draft and the description, which grows in `desc`: what the steps of
// cuda_stages.cc hand on.
struct CudaDrafts : RegionDrafts {
  CudaDrafts(std::shared_ptr<CudaStitchDesc> begun, KernelExprs& kernel, const ir::Graph& region,
             const CudaMapping& mapped, const CudaTarget& device);

  const CudaMapping& mapping;
  const CudaTarget& cuda;
  std::shared_ptr<CudaStitchDesc> desc;
  std::vector<CudaReduction> results;  // one per reduction site
  std::vector<CudaDraft> drafts, before, ahead, after;
  std::vector<int64_t> words;  // registers that each draft keeps for others
  uint32_t next_local;

  bool is_carried(const ReductionSite& i) const;
  int64_t steps_of(const ThreadLayout& s) const { return desc->outer_steps(s) * desc->inner_steps(s); }
  // Shared memory of a block with so much more of each team; whether it has that; whether an SM has room for two blocks
  // without, and for one with it.
  int64_t shared_with(int64_t bytes_of_team) const;
  bool fits_shared(int64_t bytes_of_team) const;
  bool displaces_block(int64_t bytes_of_team) const;
  void replace(CudaDraft& d, const std::map<ExprId, ExprId>& with);
  // Cycles that a value costs at each point.
  double cycles(ExprId e);
  // A load of an operand that other iterations of the grid do not read as well; what all of them read stays in the L1.
  bool is_streamed(ExprId e) const;
  // Operands that a sweep reads whatever comes before it, and that vary along all of `least` of its loops.
  std::vector<ExprId> plain_loads(const CudaDraft& d, uint64_t least) const;

  // A value that threads keep for each of their points, and how sweeps that are laid out alike read it: all from draft
  // `begin` on.
  CachedValue new_keep(ExprId e) { return {e, next_local++, pool[e].dtype}; }
  ExprId kept_value(const ThreadLayout& layout, const CachedValue& keep);
  void read_kept(size_t begin, const ThreadLayout& layout, const CachedValue& keep);
  // Of what the threads of a block keep in shared memory, each its own points.
  int64_t kept_bytes(DType stored, const ThreadLayout& layout) const;
  void keep_shared(CachedValue& keep, DType stored, const ThreadLayout& layout);
};

// A sweep of nothing yet, that lies on the threads as another does.
CudaDraft draft_like(uint64_t loops, const ThreadLayout& layout);
// The loops of a sweep outside its inner walk: what depends on them alone is computed once per row or column.
uint64_t outer_loops(const ThreadLayout& s);
// Registers that a value takes in a thread, and elements as they lie in memory.
int64_t size_in_words(DType dtype);
int64_t words_of_stored(int64_t elements, DType dtype);

inline constexpr int64_t kMostSteps = 16;  // of one thread, written out
inline constexpr int kWarp = 32;

}  // namespace heddle::schedule
