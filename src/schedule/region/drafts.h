#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "schedule/region/region.h"

namespace heddle::schedule {

// What laying out the stages of a kernel has in common on all targets: the loops of an iteration, and where its results
// lie. The kernel's expressions have moved to `pool`, which is the description's.
struct RegionDrafts {
  RegionDrafts(const KernelExprs& kernel, const ir::Graph& region, const RegionMapping& mapped, ExprPool& expressions,
               std::vector<Scratch>& buffers, std::vector<SchemeChoice>& choices);

  const KernelExprs& exprs;
  const ir::Graph& graph;
  const RegionMapping& structure;
  ExprPool& pool;
  std::vector<Scratch>& scratch;
  std::vector<SchemeChoice>& schemes;
  const uint32_t first_scratch;         // buffers from here on are scratch
  std::map<ExprId, ExprId> in_scratch;  // results that are read from there
  std::map<ExprId, double> known_cycles;

  uint64_t inner(uint64_t vars) const { return vars & ~structure.fixed & ~starts_; }
  const GridDim* blocked(VarId v) const;
  int64_t loop_extent(VarId v) const;
  int64_t loop_volume(uint64_t loops) const;
  int64_t volume(uint64_t vars) const;
  // Loops outermost first, `last` at the end.
  std::vector<VarId> ordered(uint64_t loops, std::optional<VarId> last) const;
  // Position in scratch over some inner loops: block-relative, the kernel's vector variable with unit stride.
  Index scratch_position(uint64_t loops);
  uint32_t new_scratch(DType dtype, int64_t elements);
  ExprId resolve(ExprId e) { return in_scratch.empty() ? e : pool.substitute(e, {}, in_scratch); }
  // The beginning of a block in memory, and the position in it.
  Index block_start(const Index& at, const GridDim& a, const GridDim& b);
  Index block_position(const GridDim& rows, int64_t width, const GridDim& columns);

  // "max of Softmax"
  std::string name_of(const ReductionSite& i) const;
  std::string text_of(ExprId e) const;
  // The loop along which most accesses lie side by side, of loads below `values` and of stores; nullopt: none does.
  std::map<VarId, int> unit_stride_votes(const std::vector<ExprId>& values, const std::vector<Store>& stores,
                                         uint64_t loops) const;

 private:
  const uint64_t starts_;
};

// Bits of the blocked variables that hold the start of a block.
uint64_t start_vars(const std::vector<GridDim>& grid);

}  // namespace heddle::schedule
