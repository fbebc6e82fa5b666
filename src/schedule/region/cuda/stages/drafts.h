#pragma once

#include <memory>
#include <string_view>

#include "schedule/region/cuda/mapping.h"
#include "schedule/region/drafts.h"

namespace heddle::schedule {

// A pass of a kernel over its data (a sweep), while it is being planned.
struct CudaDraft : CudaStage {
  int level = 0;
  uint64_t loops = 0, kept = 0;
  bool placed = false;  // true if `layout` has been chosen

  bool shares(const CudaDraft& earlier) const { return !scan && layout == earlier.layout; }
};

// The state of planning a kernel's sweeps, from the first drafts to the finished description in `desc`. Each step in
// stages.cc passes this object to the next step.
struct CudaDrafts : RegionDrafts {
  CudaDrafts(std::shared_ptr<CudaStitchDesc> begun, KernelExprs& kernel, const ir::Graph& region,
             const CudaMapping& mapped, const GpuTarget& device);

  const CudaMapping& mapping;
  const GpuTarget& cuda;
  std::shared_ptr<CudaStitchDesc> desc;
  std::vector<CudaReduction> results;  // one per reduction site
  std::vector<CudaDraft> drafts, before, ahead, after;
  std::vector<int64_t> words;  // for each draft, the registers that it keeps for other drafts
  uint32_t next_local;

  bool is_carried(const ReductionSite& i) const;
  // The registers in which a thread can keep values in a serial loop.
  int64_t serial_registers() const;
  int64_t steps_of(const ThreadLayout& s) const { return desc->outer_steps(s) * desc->inner_steps(s); }
  // These functions give the effects of `bytes_of_team` more bytes of shared memory for each thread group.
  // shared_with() returns the resulting bytes of shared memory per block. fits_shared() is true if a block can have
  // this size. displaces_block() is true if only one block then fits on an SM instead of two.
  int64_t shared_with(int64_t bytes_of_team) const;
  bool fits_shared(int64_t bytes_of_team) const;
  bool displaces_block(int64_t bytes_of_team) const;
  void replace(CudaDraft& d, const std::map<ExprId, ExprId>& with);
  // Returns the cycles that computing a value takes at each point of a sweep.
  double cycles(ExprId e);
  // True for a load of an operand whose address varies over the iterations of the grid, and for every load of an
  // operand if the grid has only one iteration. Data that all iterations share stays in the L1 instead.
  bool is_streamed(ExprId e) const;
  // Returns the loads of operands that have an affine index, are not under a guard, and depend on every loop in
  // `least`. In a serial loop, the position of a row need not be affine.
  std::vector<ExprId> plain_loads(const CudaDraft& d, uint64_t least) const;

  // new_keep() describes a copy of the value of `e` that each thread keeps for its own points of a sweep. read_kept()
  // makes sweeps read this copy instead of computing the value: all sweeps with the given layout, from draft `begin`
  // on.
  // keep_stored() describes one of a load in the type of the memory, which takes fewer registers for narrow types.
  CachedValue new_keep(ExprId e) { return {e, next_local++, pool[e].dtype}; }
  CachedValue keep_stored(ExprId load);
  ExprId kept_value(const ThreadLayout& layout, const CachedValue& keep);
  void read_kept(size_t begin, const ThreadLayout& layout, const CachedValue& keep);
  // Returns the bytes of shared memory in which the threads of a block keep a value, each thread for its own points.
  int64_t kept_bytes(DType stored, const ThreadLayout& layout) const;
  void keep_shared(CachedValue& keep, DType stored, const ThreadLayout& layout);
};

// Returns an empty sweep with the given layout.
CudaDraft draft_like(uint64_t loops, const ThreadLayout& layout);
// Returns the loops of a sweep that are outside its inner steps. Expressions that depend only on these loops are
// computed once per row or column.
uint64_t outer_loops(const ThreadLayout& s);
// Return the number of 32-bit registers that a thread needs: for one computed value, and for `elements` elements in
// their storage type.
int64_t size_in_words(DType dtype);
int64_t words_of_stored(int64_t elements, DType dtype);

inline constexpr int64_t kWordsOfNextRows = 64;  // registers for what the next turns of a serial loop read
inline constexpr int64_t kMostSteps = 16;        // steps of one thread, which are fully unrolled

}  // namespace heddle::schedule
