#pragma once

#include "schedule/region/region.h"

namespace heddle::schedule {

// The parallel structure of a kernel for a CPU.
struct Mapping : RegionMapping {
  bool packed = false;  // `transposed` is short and not blocked: a vector holds several of its rows
  // If whole rows are gathered along the vector variable: the variable along which rows follow each other. Positions
  // and weights are computed together for a block of rows.
  std::optional<VarId> rows;
  int64_t tasks = 1;
};

// Floats below 16 bits are converted element by element, so they are not moved as whole vectors.
inline bool is_narrow_float(DType dtype) {
  return is_float(dtype) && size_of(dtype) < 2;
}

MapResult map_kernel(KernelExprs& exprs, const ir::Graph& graph, const Target& target, const StitchOptions& options,
                     const Frontier& frontier);

// The content of a kernel input known at compile time; null if unknown.
using Constants = std::function<const Tensor*(ir::ValueId)>;

// Lays out the stages of a mapped kernel.
std::shared_ptr<CpuStitchDesc> build_stages(KernelExprs& exprs, const ir::Graph& graph, const Mapping& mapping,
                                            const Target& target, const StitchOptions& options,
                                            const Constants& constants);

}  // namespace heddle::schedule
