#pragma once

#include <fmt/format.h>

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/log.h"
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
  // Loads below `roots` with unit stride along the rows of a tile that jump along its columns go through scratch of
  // height x width elements; `with` says what they become.
  struct Tile {
    const GridDim &rows, &columns;
    int64_t height, width;
  };
  std::vector<TransposedLoad> through_tiles(const std::vector<ExprId>& roots, const Tile& tile,
                                            const std::function<bool(DType stored)>& accepts,
                                            std::map<ExprId, ExprId>& with);

  // "max of Softmax"
  std::string name_of(const ReductionSite& i) const;
  std::string text_of(ExprId e) const;
  // How much speaks for walking along each loop: loads below `values`, and stores, that lie side by side along it.
  std::map<VarId, int> unit_stride_votes(const std::vector<ExprId>& values, const std::vector<Store>& stores,
                                         uint64_t loops) const;

 private:
  const uint64_t starts_;
};

inline constexpr double kWorthStoring = 6;  // cycles above which a value is stored rather than computed twice

// A step from the expressions of a kernel to its stages.
template <typename Drafts>
struct StageStep {
  std::string_view name, what;
  void (*run)(Drafts& k);
};

// Runs steps in their order; `describe` tells what a step has left to whoever asks for it (HEDDLE_LOG=stages).
template <typename Drafts>
void run_steps(std::span<const StageStep<Drafts>> steps, Drafts& k) {
  const bool told = logs("stages");
  for (const StageStep<Drafts>& step : steps) {
    step.run(k);
    if (told) log("stages", fmt::format("{}: {}{}", step.name, step.what, describe(k)));
  }
}

}  // namespace heddle::schedule
