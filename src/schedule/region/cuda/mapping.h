#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <set>

#include "schedule/expr/expr_walk.h"
#include "schedule/region/cuda/stitch.h"
#include "schedule/region/region.h"

namespace heddle::schedule {

// The parallel structure of a GPU kernel. `fixed` includes the variable `serial`.
struct CudaMapping : RegionMapping, CudaShape {};

// Registers per thread reserved in a serial loop, not counting those for values that the thread keeps.
inline constexpr int64_t kSerialReserve = 48;

// `carry`: allows a variable that some reductions reduce over to become the serial loop of a block.
MapResult map_cuda(KernelExprs& exprs, const ir::Graph& graph, const Target& target, const Frontier& frontier,
                   bool carry, ForcedMapping forced = ForcedMapping::kNone);

std::shared_ptr<CudaStitchDesc> build_cuda_stages(KernelExprs& exprs, const ir::Graph& graph,
                                                  const CudaMapping& mapping, const Target& target);

}  // namespace heddle::schedule
