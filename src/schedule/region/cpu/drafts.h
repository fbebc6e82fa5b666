#pragma once

#include <memory>

#include "schedule/region/cpu/mapping.h"
#include "schedule/region/drafts.h"

namespace heddle::schedule {

// A stage under construction. Its expressions still range over whole loops.
struct CpuDraft {
  int level = 0;
  uint64_t loops = 0, kept = 0;
  std::vector<Reduction> reductions;
  std::vector<ExprId> values, positions;  // one per reduction
  std::vector<Store> stores;
  std::optional<Stage::Scan> scan;

  std::vector<ExprId> roots() const;
};

// The state of building a kernel's stages, from the first drafts to the finished description `desc`. Each step in
// cpu/stages.cc passes this object to the next step.
struct CpuDrafts : RegionDrafts {
  CpuDrafts(std::shared_ptr<CpuStitchDesc> begun, KernelExprs& kernel, const ir::Graph& region, const Mapping& mapped,
            const CpuTarget& machine, const StitchOptions& choices, const Constants& constants);

  const Mapping& mapping;
  const CpuTarget& cpu;
  const StitchOptions& options;
  const Constants& constant_of;
  std::shared_ptr<CpuStitchDesc> desc;
  std::vector<Reduction> results;  // one per reduction site
  std::vector<CpuDraft> drafts;
  std::map<ExprId, ExprId> packed;  // from loads to the loads from scratch that replace them

  void replace(CpuDraft& d, const std::map<ExprId, ExprId>& with);
  double cycles(ExprId e);
  bool fits_scratch(int64_t elements, DType dtype) const;
  // The loop along which most accesses of a stage have unit stride.
  std::optional<VarId> vector_of(const CpuDraft& d) const;
};

}  // namespace heddle::schedule
