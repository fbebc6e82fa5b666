#include "schedule/region/cuda/stages/drafts.h"

#include <algorithm>

#include "base/divide.h"
#include "schedule/region/cuda/serial_rows.h"
#include "schedule/region/mapping.h"

namespace heddle::schedule {

CudaDrafts::CudaDrafts(std::shared_ptr<CudaStitchDesc> begun, KernelExprs& kernel, const ir::Graph& region,
                       const CudaMapping& mapped, const GpuTarget& device)
    : RegionDrafts(kernel, region, mapped, *begun),
      mapping(mapped),
      cuda(device),
      desc(std::move(begun)),
      next_local(static_cast<uint32_t>(kernel.sites.size())) {
  static_cast<CudaShape&>(*desc) = mapping;
}

bool CudaDrafts::is_carried(const ReductionSite& i) const {
  return schedule::is_carried(mapping, i);
}

int64_t CudaDrafts::shared_with(int64_t bytes_of_team) const {
  int64_t bytes = bytes_of_team;
  for (const Scratch& s : scratch) bytes += round_up(s.elements * static_cast<int64_t>(size_of(s.dtype)), 16);
  return bytes * mapping.teams();
}

bool CudaDrafts::fits_shared(int64_t bytes_of_team) const {
  const int64_t reserve = mapping.cta_group > 1 ? 28 << 10 : 16 << 10;  // combining across warps, and blocks
  return shared_with(bytes_of_team) <= cuda.shared_bytes_per_block - reserve;
}

bool CudaDrafts::displaces_block(int64_t bytes_of_team) const {
  constexpr int64_t kReserve = 4 << 10;  // a few results of each block
  const int64_t half = cuda.shared_bytes_per_block / 2 - kReserve;
  return shared_with(0) <= half && shared_with(bytes_of_team) > half;
}

void CudaDrafts::replace(CudaDraft& d, const std::map<ExprId, ExprId>& with) {
  for (CudaReduction& r : d.reductions) r.value = pool.substitute(r.value, {}, with);
  for (Store& s : d.stores) s.value = pool.substitute(s.value, {}, with);
  for (CachedValue& k : d.cached) k.value = pool.substitute(k.value, {}, with);
}

double CudaDrafts::cycles(ExprId e) {
  const auto [at, is_new] = known_cycles.try_emplace(e, 0);
  if (is_new) {
    // What does not vary within the sweep is computed once, outside of it.
    visit_exprs(pool, {e}, [&](ExprId id) {
      if (inner(pool.vars(id)) != 0) at->second += node_cycles(pool, id);
    });
  }
  return at->second;
}

bool CudaDrafts::is_streamed(ExprId e) const {
  if (pool[e].kind != Expr::Kind::kLoad || pool[e].id >= first_scratch) return false;
  uint64_t grid = mapping.fixed;
  for (const GridDim& d : mapping.grid) grid |= bit(d.var);
  for (VarId v = 0; v < 64; ++v) {
    if ((grid & bit(v)) && pool.indices.extent(v) == 1) grid &= ~bit(v);
  }
  return grid == 0 || (pool.vars(e) & grid) != 0;
}

std::vector<ExprId> CudaDrafts::plain_loads(const CudaDraft& d, uint64_t least) const {
  std::vector<ExprId> found;
  for (ExprId e : unconditional(pool, d.roots())) {
    const Expr& load = pool[e];
    if (load.kind != Expr::Kind::kLoad || load.id >= first_scratch || (least & ~pool.vars(e)) != 0) continue;
    const bool affine = std::all_of(load.index.terms.begin(), load.index.terms.end(), [&](const auto& term) {
      if (pool.indices.atom(term.first).kind == Atom::Kind::kVar) return true;
      // The address of a row costs little compared with the row.
      return mapping.serial && !pool.indices.reads_values(term.first) && (pool.vars(Index{0, {term}}) & d.loops) == 0;
    });
    if (affine) found.push_back(e);
  }
  return found;
}

ExprId CudaDrafts::kept_value(const ThreadLayout& layout, const CachedValue& keep) {
  Index varies;
  for (VarId v : layout.loops) varies = pool.indices.add(varies, pool.indices.var(v));
  return pool.local(keep.dtype, keep.local, varies);
}

void CudaDrafts::read_kept(size_t begin, const ThreadLayout& layout, const CachedValue& keep) {
  const std::map<ExprId, ExprId> with = {{keep.value, kept_value(layout, keep)}};
  for (size_t n = begin; n < drafts.size(); ++n) {
    if (!drafts[n].scan && drafts[n].layout == layout) replace(drafts[n], with);
  }
}

int64_t CudaDrafts::serial_registers() const {
  constexpr int64_t kRegisters = 65536, kOfThread = 255, kFewOperands = 8;
  constexpr int64_t kOfVectors = 8, kOfOperand = 3;  // what the compiler takes beside the reserve, for addresses, too
  const int64_t blocks = std::max(mapping.min_blocks_per_sm, 1);
  const auto operands = static_cast<int64_t>(exprs.inputs.size() + exprs.roots.size());
  return std::min<int64_t>(kRegisters / (mapping.threads * blocks), kOfThread) - kSerialReserve - kOfVectors -
         kOfOperand * std::max<int64_t>(operands - kFewOperands, 0);
}

CachedValue CudaDrafts::keep_stored(ExprId load) {
  CachedValue keep = new_keep(load);
  keep.stored = true;
  keep.buffer = pool[load].id;
  return keep;
}

int64_t CudaDrafts::kept_bytes(DType stored, const ThreadLayout& layout) const {
  const int64_t lanes = std::min(layout.active, mapping.threads);
  return steps_of(layout) * layout.vector * lanes * static_cast<int64_t>(size_of(stored));
}

void CudaDrafts::keep_shared(CachedValue& keep, DType stored, const ThreadLayout& layout) {
  keep.shared = true;
  keep.buffer = first_scratch + static_cast<uint32_t>(scratch.size());
  scratch.push_back({stored, kept_bytes(stored, layout) / static_cast<int64_t>(size_of(stored))});
}

CudaDraft draft_like(uint64_t loops, const ThreadLayout& layout) {
  CudaDraft d;
  d.loops = d.kept = loops;
  d.layout = layout;
  d.placed = true;
  return d;
}

uint64_t outer_loops(const ThreadLayout& s) {
  uint64_t set = 0;
  for (size_t k = 0; k < s.loops.size(); ++k) {
    if ((k < s.outer_loops) != s.by_columns) set |= bit(s.loops[k]);
  }
  return set;
}

int64_t size_in_words(DType dtype) {
  return std::max<int64_t>(1, size_of(compute_dtype(dtype)) / 4);
}

int64_t words_of_stored(int64_t elements, DType dtype) {
  return ceil_div(elements * static_cast<int64_t>(size_of(dtype)), 4);
}

}  // namespace heddle::schedule
