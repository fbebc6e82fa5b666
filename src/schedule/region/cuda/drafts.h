#pragma once

#include <algorithm>
#include <string>

#include "schedule/region/cuda/kernel.h"

namespace heddle::schedule {

// A sweep while it is put together.
struct CudaDraft {
  int level = 0;
  uint64_t loops = 0, kept = 0;
  std::vector<CudaReduction> reductions;
  std::vector<Store> stores;
  std::vector<CachedValue> cached;
  std::optional<Stage::Scan> scan;
  ThreadLayout layout;
  bool placed = false;      // `spread` is chosen
  bool async_copy = false;  // as CudaStage
};

// The sweeps of a kernel between their first draft and the description: how their points are spread over threads, and
// what several of them need.
class CudaDrafts {
 public:
  using Draft = CudaDraft;
  CudaDrafts(KernelExprs& exprs, const ir::Graph& graph, const CudaMapping& mapping, const CudaTarget& cuda)
      : exprs_(exprs), pool_(exprs.pool), graph_(graph), mapping_(mapping), cuda_(cuda) {}

 protected:
  static uint64_t bit(VarId v) { return uint64_t{1} << v; }
  uint64_t inner(uint64_t vars) const { return vars & ~mapping_.fixed & ~start_vars(mapping_.grid); }
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
  bool is_carried(const ReductionSite& i) const { return mapping_.serial && (i.reduced & bit(*mapping_.serial)); }

  std::vector<VarId> ordered(uint64_t loops, std::optional<VarId> last) const {
    std::vector<VarId> r;
    for (VarId v = 0; v < 64; ++v) {
      if ((loops >> v & 1) && v != last) r.push_back(v);
    }
    if (last && (loops >> *last & 1)) r.push_back(*last);
    return r;
  }

  // Position in a team's scratch over some inner loops: block-relative, the kernel's vector variable with unit stride.
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
  int64_t scratch_bytes() const {
    int64_t bytes = 0;
    for (const Scratch& s : scratch_) bytes += (s.elements * static_cast<int64_t>(size_of(s.dtype)) + 15) / 16 * 16;
    return bytes * mapping_.teams();
  }
  bool fits_shared(int64_t bytes_of_team) const {
    const int64_t reserve = mapping_.cta_group > 1 ? 28 << 10 : 16 << 10;  // combining across warps, and blocks
    return scratch_bytes() + bytes_of_team * mapping_.teams() <= cuda_.shared_bytes_per_block - reserve;
  }

  static std::vector<ExprId> values_of(const Draft& d) {
    std::vector<ExprId> all;
    for (const CudaReduction& r : d.reductions) {
      all.push_back(r.value);
      if (is_arg(r.combine)) all.push_back(r.position);
    }
    return all;
  }
  static std::vector<ExprId> roots_of(const Draft& d) {
    std::vector<ExprId> all = values_of(d);
    for (const Store& s : d.stores) all.push_back(s.value);
    for (const CachedValue& k : d.cached) all.push_back(k.value);
    return all;
  }
  void replace(Draft& d, const std::map<ExprId, ExprId>& with) {
    for (CudaReduction& r : d.reductions) r.value = pool_.substitute(r.value, {}, with);
    for (Store& s : d.stores) s.value = pool_.substitute(s.value, {}, with);
    for (CachedValue& k : d.cached) k.value = pool_.substitute(k.value, {}, with);
  }

  // Extents through the description while the pool is still ours.
  template <typename F>
  void desc_pool_view(F f) {
    std::swap(desc_->pool, pool_);
    f(*desc_);
    std::swap(desc_->pool, pool_);
  }

  int64_t steps_of(const ThreadLayout& s) {
    int64_t steps = 0;
    desc_pool_view([&](const CudaStitchDesc& view) { steps = view.outer_steps(s) * view.inner_steps(s); });
    return steps;
  }
  int64_t chain_of(const ThreadLayout& s) {
    int64_t steps = 0;
    desc_pool_view([&](const CudaStitchDesc& view) { steps = view.inner_steps(s); });
    return steps;
  }

  // Sums of squared deviations from the mean of a sum before them join that sum.
  void merge_moments();
  bool squares_deviation(ExprId e, const CudaReduction& sum, int64_t count) const;

  std::optional<VarId> lane_of(const Draft& d) const;
  int vector_for(const Draft& d, VarId lane) const;
  void choose_spreads();
  bool is_small(const Draft& d);
  void layout_points(Draft& d, int team);
  int vector_shared(const Draft& d, VarId lane) const;
  void layout_reduction(Draft& d);
  double cycles(ExprId e);
  std::string text_of(ExprId e) const;
  static uint64_t outer_loops(const ThreadLayout& s);
  void store_shared_columns();
  bool is_streamed(ExprId e) const;
  bool reads_stream(ExprId e) const;
  void drop_derived(std::vector<ExprId>& found) const;
  int64_t register_words() const;
  void keep_between_stages();
  bool shares(size_t first, size_t later) const;
  static int64_t size_in_words(DType dtype);
  static int64_t words_of_stored(int64_t elements, DType dtype);
  void keep(size_t first, ExprId e, std::vector<int64_t>& words);
  int64_t kept_bytes(DType stored, const ThreadLayout& layout);
  void keep_shared(CachedValue& keep, DType stored, const ThreadLayout& layout);
  std::vector<ExprId> plain_loads(const Draft& d, uint64_t least) const;
  ExprId local_over(const ThreadLayout& layout, const CachedValue& keep);
  bool copies_ahead(ExprId e, const ThreadLayout& layout);
  void load_ahead();
  void load_before();
  bool has_cut_step(const ThreadLayout& layout);
  void load_next();
  void find_once();

  KernelExprs& exprs_;
  ExprPool& pool_;
  const ir::Graph& graph_;
  const CudaMapping& mapping_;
  const CudaTarget& cuda_;
  std::shared_ptr<CudaStitchDesc> desc_;
  uint32_t first_scratch_ = 0, next_local_ = 0;
  std::vector<CudaReduction> results_;
  std::map<ExprId, ExprId> in_scratch_;
  std::map<uint32_t, uint32_t> keep_buffers_;
  std::vector<Draft> drafts_, before_, ahead_, after_;
  std::vector<int64_t> words_;  // registers that each draft keeps for others
  std::vector<Scratch> scratch_;
  std::vector<SchemeChoice> schemes_;
  std::map<ExprId, double> cycles_;
};

}  // namespace heddle::schedule
